"""What the scripts with PyTorch begin with: the runtime that share_tensor.py has, and PyTorch with a device."""
import sys

from share_tensor import Runtime  # noqa: F401


def torch_or_none(usage):
    """PyTorch, or none where it or its device is missing; ends the program if it was not told of an adapter."""
    if len(sys.argv) < 2:
        sys.exit(usage)
    try:
        import torch
    except ImportError as error:
        print(f"skipped: {error}")
        return None
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no device")
        return None
    return torch
