"""Refuses subinterpreters, where this module would hang at their end: Python does so itself from 3.12 on."""

import sys

if sys.version_info < (3, 12):
    import ctypes

    _current = ctypes.pythonapi.PyInterpreterState_Get
    _number_of = ctypes.pythonapi.PyInterpreterState_GetID
    _current.restype, _number_of.restype, _number_of.argtypes = ctypes.c_void_p, ctypes.c_int64, [ctypes.c_void_p]
    if _number_of(_current()) != 0:
        raise ImportError("causeway_ipc does not support loading in subinterpreters: use processes")
