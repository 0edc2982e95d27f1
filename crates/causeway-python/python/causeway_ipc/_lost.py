"""What a `multiprocessing.Pool` gets instead of an array that cannot be opened."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

from ._errors import CausewayError

_Make = TypeVar("_Make", bound=Callable[..., Any])


class Lost:
    """An array that a task or a result of a pool should have been: any use of it raises the error.

    The pool's own loops, in a thread of the parent and in each worker, would end by an exception, and the program would wait for
    ever. So the error comes where the array is used: in the task, or in the program that has the result.
    """

    def __init__(self, error: CausewayError) -> None:
        self.__dict__["error"] = error

    def _raise(self, *_: object, **__: object) -> NoReturn:
        error: CausewayError = self.__dict__["error"]
        raise type(error)(str(error))

    def __repr__(self) -> str:
        return f"<lost array: {self.__dict__['error']}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and not name.startswith(("__array", "__dlpack", "__cuda")):
            raise AttributeError(name)
        self._raise()

    __setattr__ = __reduce_ex__ = _raise
    __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = __bool__ = __float__ = __int__ = __index__ = _raise
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = _raise
    __hash__ = object.__hash__  # it may be a key of a message: the loop that receives it makes the dict


_LOOPS = {"worker", "_handle_results"}
_RECEIVES = {"multiprocessing.queues", "multiprocessing.connection", "torch.multiprocessing.queue"}


def _is_in_a_loop_of_a_pool() -> bool:
    """Whether it is a pool's own loop that receives, and not a function that the pool calls."""
    frame: Any = sys._getframe()
    receives = ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == "multiprocessing.pool":
            return receives in _RECEIVES and frame.f_code.co_name in _LOOPS
        receives, frame = module, frame.f_back
    return False


def lost_in_pools(make: _Make) -> _Make:
    """A function that makes what was sent: in a pool's own loop, an error of it is what it makes. What is lost stays so."""

    @wraps(make)
    def made(*arguments: Any) -> Any:
        if arguments and isinstance(arguments[0], Lost):
            return arguments[0]
        try:
            return make(*arguments)
        except CausewayError as error:
            if _is_in_a_loop_of_a_pool():
                return Lost(error)
            raise

    return made  # type: ignore[return-value]
