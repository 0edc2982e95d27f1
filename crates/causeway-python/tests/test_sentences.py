"""What is refused says what to do, and doing that works. Names of types as NumPy has them. No timeout at all."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing as cw_multiprocessing
import numpy as np
import pytest

OTHER = ">" if sys.byteorder == "little" else "<"


@pytest.mark.parametrize(
    ("refused", "advice", "follow"),
    [
        (np.array([1, 2], OTHER + "i4"), "newbyteorder", lambda a: a.astype(a.dtype.newbyteorder("="))),
        (np.array([1, 2], "M8[s]"), r"view\('int64'\)", lambda a: a.view("int64")),
        (np.array([b"abcde"]), r"view\('uint8'\)", lambda a: np.ascontiguousarray(a).view("uint8")),
        (np.zeros(3, [("a", "i4"), ("b", "f8")]), r"view\('uint8'\)", lambda a: np.ascontiguousarray(a).view("uint8")),
        (np.array(["abc"]), r"view\('uint32'\)", lambda a: np.ascontiguousarray(a).view("uint32")),
    ],
)
def test_an_array_of_a_type_that_is_not_shared_says_what_to_share(refused: Any, advice: str, follow: Callable[[Any], Any]) -> None:
    with pytest.raises(cw.InvalidUse, match=advice):
        cw.share(refused)
    instead = follow(refused)
    with cw.share(instead) as export:
        assert np.array_equal(np.asarray(cw.open(export)).view(instead.dtype), instead)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is float64 on this machine")
def test_long_doubles_say_what_to_share() -> None:
    for dtype, instead in [(np.longdouble, "float64"), (np.clongdouble, "complex128")]:
        with pytest.raises(cw.InvalidUse, match=instead):
            cw.share(np.ones(3, dtype))


def test_types_of_ml_dtypes_that_are_not_shared_say_what_to_share() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    small = np.arange(3).astype(ml_dtypes.int4)
    with pytest.raises(cw.InvalidUse, match=r"int4 .*view\('uint8'\)"):
        cw.share(small)
    with cw.share(np.ascontiguousarray(small).view("uint8")) as export:
        assert np.asarray(cw.open(export)).view(ml_dtypes.int4).tolist() == small.tolist()


@pytest.mark.parametrize(
    "name",
    ["half", "single", "double", "csingle", "cdouble", "bool_", "byte", "short", "intc", "longlong", "intp", "ubyte", "ushort", "uintc",
     "ulonglong", "uintp"],
)  # fmt: skip
def test_names_of_types_are_those_of_numpy(name: str) -> None:
    assert cw.empty(2, name).dtype == np.dtype(getattr(np, name)).name


@pytest.mark.parametrize("name", ["S5", "int4", "longdouble", "bf16"])
def test_a_name_that_is_no_types_says_which_there_are(name: str) -> None:
    with pytest.raises(cw.InvalidUse, match="take one of bool, int8, .*float64, .*bfloat16"):
        cw.empty(2, name)


def test_text_with_half_of_a_surrogate_pair_is_a_damaged_ticket_and_no_name() -> None:
    with pytest.raises(cw.InvalidTicket, match="damaged"):
        cw.open("\ud800")
    with pytest.raises(TypeError, match="a ticket is text, and not int"):
        cw.open(3)
    with pytest.raises(cw.InvalidUse, match="surrogate"):
        cw.share_many({"\ud800": np.ones(3)})


@pytest.mark.parametrize("timeout", [None, math.inf])
def test_no_timeout_is_for_ever(timeout: float | None) -> None:
    event = cw.Event()
    event.record()
    event.synchronize(timeout)
    with cw.share(np.ones(3)) as export:
        assert cw.open(export.ticket, timeout=timeout).tolist() == [1] * 3
    for none in [-1.0, math.nan]:
        with pytest.raises(cw.InvalidUse, match="from 0 to 1e19, or None"):
            event.synchronize(none)


class Unwilling:
    """An array whose library does not let others have it."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: object) -> None:
        raise BufferError("it is sparse")


def test_what_its_library_does_not_let_others_have_is_refused_with_its_reason() -> None:
    with pytest.raises(cw.InvalidUse, match=r"\(it is sparse\): share a plain, dense copy"):
        cw.share(Unwilling())


class Tensor(Unwilling):
    """A tensor of PyTorch's, as far as it is asked before it is looked at."""

    def __init__(self, state: str) -> None:
        self.requires_grad = state == "requires_grad"
        self.is_conj, self.is_neg = (lambda: state == "is_conj"), (lambda: state == "is_neg")


@pytest.mark.parametrize(("state", "instead"), [("requires_grad", "detach"), ("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")])
def test_a_tensor_that_is_more_than_its_memory_says_what_to_share(state: str, instead: str) -> None:
    with pytest.raises(cw.InvalidUse, match=rf"share tensor\.{instead}\(\)"):
        cw.share(Tensor(state))


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        (-1, cw.InvalidUse, "a time of -1.0 seconds cannot be: give a number from 0 to 1e19, or None"),
        (math.nan, cw.InvalidUse, "a time of NaN seconds cannot be"),
        (1e300, cw.InvalidUse, "a time of 1e300 seconds cannot be: give a number from 0 to 1e19"),
        ("1", TypeError, "must be real number, not str"),
    ],
)
def test_a_wrong_time_is_refused_alike_wherever_one_is_given(wrong: Any, error: type[Exception], sentence: str) -> None:
    channel, export = cw.Channel(), cw.share(cw.empty(4))
    receiver = cw.open(channel.ticket)
    channel.send(np.ones(3))

    async def each_async() -> None:
        for call in [receiver.receive_async, channel.close_async, lambda timeout: channel.send_async(np.ones(3), timeout=timeout)]:
            with pytest.raises(error, match=sentence):
                await call(timeout=wrong)

    for call in [
        receiver.receive,
        channel.close,
        cw.Event().synchronize,
        lambda timeout: channel.send(np.ones(3), timeout=timeout),
        lambda timeout: cw.open(export.ticket, timeout=timeout),
        lambda timeout: cw.share(cw.empty(4), expires=timeout),
        lambda timeout: cw_multiprocessing.install(linger=timeout),
    ]:
        with pytest.raises(error, match=sentence):
            call(timeout=wrong)
    asyncio.run(each_async())
    assert receiver.receive().shape == (3,)
    with pytest.raises(cw.Timeout):
        receiver.receive(timeout=0)


@pytest.mark.parametrize("call", [cw.share, cw.array, lambda array: cw.share_many({"name": array}), cw_multiprocessing._causeway.is_shareable])
def test_an_array_that_lies_askew_in_shareable_memory_says_what_to_do(call: Callable[[Any], Any]) -> None:
    askew = cw.empty(1000, "uint8").numpy()[1:81].view("float64")
    with pytest.raises(cw.InvalidUse, match="at an address that elements of its type cannot have: copy it first"):
        call(askew)
    call(askew.copy())


@pytest.mark.parametrize("missing", ["typestr", "shape", "data"])
def test_an_interface_that_does_not_say_all_is_refused(missing: str) -> None:
    class Partly:
        def __init__(self, array: Any) -> None:
            self.array = array
            self.__array_interface__ = {key: value for key, value in array.__array_interface__.items() if key != missing}

    with pytest.raises(cw.InvalidUse, match=f"does not state its {missing}"):
        cw.share(Partly(np.ones(3)))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        *[(lambda wrong=wrong: cw.empty_many(wrong), "takes arrays by their names") for wrong in (None, 3, [np.ones(3)])],
        (lambda: cw.empty_many({"a": 1}), "a pair of a shape and a type, and not int"),
        (lambda: cw.Channel(device=3), "named by text, and not int"),
    ],
)
def test_arguments_of_a_wrong_type_are_a_type_error(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        call()
