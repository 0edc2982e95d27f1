"""What a `multiprocessing.Pool` gets instead of an array that cannot be opened."""

from __future__ import annotations

import io
import pickle
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

    def __setstate__(self, state: object) -> None:
        """The state of what it is instead of, which is lost, too."""

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
_RECEIVES = {"multiprocessing.queues", "multiprocessing.connection", "torch.multiprocessing.queue", "causeway_ipc._given_up", "causeway_ipc._hooks"}


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


_Unpickler: Any = getattr(pickle, "_Unpickler")  # the one in Python


class _Piecewise(_Unpickler):  # type: ignore[misc]
    """Makes of a message what can be made. The rest is lost: the array, and what cannot be made of it."""

    dispatch: dict[int, Callable[[Any], None]] = _Unpickler.dispatch.copy()

    def __init__(self, data: Any, error: CausewayError) -> None:
        super().__init__(io.BytesIO(data))
        self.error = error


def _lost_where_it_fails(code: bytes, takes_all: bool) -> None:
    """Has what a code of pickle's fails to make be lost. Such a code leaves what it works on, or `takes_all` that it needs."""
    load = _Piecewise.dispatch[code[0]]

    def loaded(self: _Piecewise) -> None:
        try:
            load(self)
        except Exception:
            if not takes_all:
                self.stack.pop()
            self.stack.append(Lost(self.error))

    _Piecewise.dispatch[code[0]] = loaded


for _code in [pickle.REDUCE, pickle.BUILD, pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS, pickle.ADDITEMS]:
    _lost_where_it_fails(_code, takes_all=False)
for _code in [pickle.NEWOBJ, pickle.NEWOBJ_EX]:
    _lost_where_it_fails(_code, takes_all=True)


def loads(data: Any) -> Any:
    """What was pickled. In a pool's own loop, an object that cannot be made without a lost array is lost, too, and the rest is made."""
    try:
        return pickle.loads(data)
    except CausewayError as error:
        if not _is_in_a_loop_of_a_pool():
            raise
        return _Piecewise(data, error).load()


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
