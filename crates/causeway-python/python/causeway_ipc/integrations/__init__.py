"""Causeway beneath other projects' own hooks: Ray, vLLM and LMCache. Nothing of them is imported before it is asked for."""
