"""Arrays in one process: what they are to NumPy and to DLPack, how long they live, and which tickets are refused."""

from __future__ import annotations

import array
import ctypes
import gc
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterable
from typing import Any

import causeway_ipc as cw
import numpy as np
import pytest

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128"]  # fmt: skip
KEYS = [0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(3, 0, -2), slice(2, 2), ..., None, (0, 1), (..., 0),
        (slice(1, None), 2), (None, 1, ..., slice(None, None, 2)), (1, slice(0, 4, 3), -1), (0, 0, 0), ()]  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: str = "float32") -> tuple[cw.Array, np.ndarray]:
    shared = cw.empty(shape, dtype)
    view = np.asarray(shared)
    view[...] = np.arange(view.size).reshape(shape) % 100
    return shared, view


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_of_each_type_is_a_view_and_comes_out_of_its_ticket(dtype: str) -> None:
    shared, view = numbers((3, 5), dtype)
    assert view.dtype == dtype and view.ctypes.data == shared.ptr and shared.dtype == dtype
    with cw.share(shared) as export:
        opened = np.asarray(cw.open(export.ticket))
    assert opened.dtype == dtype
    np.testing.assert_array_equal(opened, view)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_selects_what_numpy_selects(key: object) -> None:
    shared, view = numbers((3, 4, 5))
    part, expected = shared[key], view[key]
    assert part.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(part), expected)
    np.testing.assert_array_equal(np.from_dlpack(part), expected)
    if part.size:
        with cw.share(part) as export:
            np.testing.assert_array_equal(np.asarray(cw.open(export)), expected)


def test_an_index_that_is_not_there_is_refused() -> None:
    shared, _ = numbers((3, 4))
    for key in [3, -4, (0, 4), (0, 0, 0), (..., ...)]:
        with pytest.raises(IndexError):
            shared[key]
    for key in [True, "a", 1.0, [0, 1]]:
        with pytest.raises(TypeError):
            shared[key]
    assert [int(row.numpy()[0]) for row in shared] == [0, 4, 8]


def test_setting_writes_to_the_memory() -> None:
    shared, view = numbers((3, 4))
    shared[1:, ::2] = 77
    assert view[2].tolist() == [77, 9, 77, 11] and len(shared) == 3


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_arrays_with_few_elements_or_none_are_arrays(shape: tuple[int, ...]) -> None:
    shared = cw.empty(shape, "int32")
    assert np.asarray(shared).shape == np.from_dlpack(shared).shape == shape
    with cw.share(shared) as export:
        assert cw.open(export).shape == shape


def test_shapes_that_cannot_be_are_refused() -> None:
    for shape in [(-1,), (1 << 40, 1 << 40), (1,) * 65]:
        with pytest.raises(cw.InvalidUse):
            cw.empty(shape, "int8")
    for dtype in ["float31", "object", "datetime64"]:
        with pytest.raises(cw.InvalidUse):
            cw.empty(1, dtype)
    for device in ["gpu", "cpu:7", "cpu:x"]:
        with pytest.raises(cw.WrongDevice):
            cw.empty(1, "int8", device)


def test_types_are_named_as_people_name_them() -> None:
    for given, named in [(float, "float64"), (int, "int64"), (bool, "bool"), (np.float16, "float16"),
                         (np.dtype("u2"), "uint16"), ("bfloat16", "bfloat16")]:  # fmt: skip
        assert cw.empty(2, given).dtype == named


def test_types_that_numpy_lacks_say_what_to_do() -> None:
    shared = cw.empty(4, "bfloat16")
    with cw.share(shared) as export:
        assert cw.open(export).dtype == "bfloat16"
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(TypeError, match="ml_dtypes"):
            np.asarray(shared)
        return
    view = np.asarray(shared)
    assert view.dtype == ml_dtypes.bfloat16 and view.ctypes.data == shared.ptr
    assert cw.share(np.ones(3, ml_dtypes.float8_e5m2)).array.dtype == "float8_e5m2"


def test_dlpack_of_both_versions_and_its_options() -> None:
    shared, view = numbers((2, 3))
    assert shared.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(shared.__dlpack__()) and '"dltensor_versioned"' in repr(shared.__dlpack__(max_version=(1, 3)))
    same, copied = np.from_dlpack(shared), np.from_dlpack(shared, copy=True)
    view[0, 0] = 50
    assert same[0, 0] == 50 and copied[0, 0] == 0
    for options in [{"stream": 2}, {"dl_device": (2, 0)}, {"dl_device": (2, 0), "copy": False}]:
        with pytest.raises(BufferError):
            shared.__dlpack__(**options)


class Tensor(ctypes.Structure):
    """`DLTensor`"""

    _fields_ = [("data", ctypes.c_size_t), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]  # fmt: skip


class Managed(ctypes.Structure):
    """`DLManagedTensorVersioned`"""


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", Deleter),
                    ("flags", ctypes.c_uint64), ("tensor", Tensor)]  # fmt: skip
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
Out = ctypes.POINTER(ctypes.POINTER(Managed))


class Exchange(ctypes.Structure):
    """`DLPackExchangeAPI`"""

    _fields_ = [("version", ctypes.c_uint32 * 2), ("older", ctypes.c_void_p),
                ("allocate", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor), Out, ctypes.c_void_p, SetError)),
                ("managed_of", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, Out)),
                ("object_of", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.py_object))),
                ("tensor_of", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))),
                ("stream_of", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)))]  # fmt: skip


def test_the_exchange_table_of_dlpack_gives_takes_and_makes_arrays() -> None:
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = Exchange.from_address(address(cw.Array.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))
    assert tuple(table.version) == (1, 3) and not table.older
    shared, view = numbers((3, 4), "int16")
    tensor, managed, made, stream = Tensor(), ctypes.POINTER(Managed)(), ctypes.py_object(), ctypes.c_void_p(7)
    part = shared[1:, ::-2]
    assert table.tensor_of(part, tensor) == 0 == table.stream_of(1, 0, stream)
    assert (tensor.data, tensor.ndim, tensor.code, tensor.bits, tensor.lanes) == (part.ptr, 2, 0, 16, 1) and stream.value is None
    assert tensor.shape[:2] == [2, 2] and tensor.strides[:2] == [4, -2] and tuple(tensor.device) == (1, 0)
    assert table.managed_of(part, managed) == 0
    before = part.ptr
    del shared, part
    gc.collect()
    assert table.object_of(managed, made) == 0
    back = made.value
    assert isinstance(back, cw.Array) and back.ptr == before and back.tolist() == view[1:, ::-2].tolist()
    ctypes.pythonapi.Py_DecRef(made)  # ctypes has one of its own
    kept = cw.empty((2, 2), "int16")
    table.tensor_of(kept, tensor)
    assert table.allocate(tensor, managed, None, SetError()) == 0
    assert managed.contents.tensor.shape[:2] == [2, 2] and managed.contents.tensor.strides[:2] == [2, 1]
    managed.contents.deleter(managed)
    said = []
    tensor.code = 77
    assert table.allocate(tensor, managed, None, SetError(lambda _, kind, why: said.append((kind, why)))) == -1
    assert said[0][0] == b"BufferError" and b"77" in said[0][1]
    with pytest.raises(TypeError):
        table.tensor_of(3, tensor)
    foreign = np.zeros(4, "float32")
    table.managed_of(cw.empty(4), managed)
    managed.contents.tensor.data = foreign.ctypes.data
    with pytest.raises(BufferError, match="another library"):
        table.object_of(managed, made)
    managed.contents.deleter(managed)


def test_what_speaks_a_protocol_can_be_shared() -> None:
    source = np.arange(12.0).reshape(3, 4)
    for given, expected in [
        (source[::-1, ::3], source[::-1, ::3]), (source.T, source.T), (b"bytes", list(b"bytes")),
        (bytearray(3), [0] * 3), (array.array("d", [1, 2]), [1, 2]), (memoryview(b"ab"), [97, 98]),
    ]:  # fmt: skip
        with cw.share(given) as export:
            np.testing.assert_array_equal(np.asarray(cw.open(export)), expected)
    with cw.share(memoryview(np.asfortranarray(source))) as export:
        opened = np.asarray(cw.open(export))
        assert (opened == source).all() and opened.flags.f_contiguous
    for given in [None, "text", [1, 2], object()]:
        with pytest.raises(TypeError):
            cw.share(given)
    for given in [np.zeros(2, "O"), np.zeros(2, ">f4"), np.zeros(2, "datetime64[s]"), np.zeros(2, "i4,f4")["f1"].view()]:
        if given.dtype != "f4":
            with pytest.raises(cw.InvalidUse):
                cw.share(given)


def test_a_host_array_is_copied_once_and_a_shareable_one_is_not() -> None:
    source = np.arange(4)
    with cw.share(source) as export:
        assert np.asarray(export.array)[2] == 2 and export.array.ptr != source.ctypes.data
    shared, view = numbers((10,))
    with cw.share(view[3:]) as export:
        assert export.array.ptr == view[3:].ctypes.data
        np.asarray(cw.open(export))[0] = 99
    assert view[3] == 99


def test_memory_lives_as_long_as_any_view() -> None:
    shared, view = numbers((1 << 20,), "uint8")
    gone = weakref.ref(shared)
    first, second = np.from_dlpack(shared[10:]), shared[20:]
    del shared, view
    gc.collect()
    assert gone() is None  # the object is, the memory is not
    first[:] = 7
    assert np.asarray(second)[0] == 7
    with cw.share(second) as export:
        opened = cw.open(export)
    del first, second, export
    gc.collect()
    assert np.asarray(opened)[0] == 7


def test_an_export_is_withdrawn_once_and_travels_as_its_ticket() -> None:
    import pickle

    shared, _ = numbers((4,))
    export = cw.share(shared)
    assert pickle.loads(pickle.dumps(export)) == export.ticket and export.ticket not in repr(export)
    opened = cw.open(export)
    export.close()
    export.close()
    with pytest.raises(cw.Withdrawn, match="withdrawn"):
        cw.open(export.ticket)
    assert np.asarray(opened)[3] == 3
    dropped = cw.share(shared).ticket
    gc.collect()
    with pytest.raises(cw.Withdrawn):
        cw.open(dropped)


def test_many_arrays_travel_in_one_ticket_each_in_its_own_memory_once() -> None:
    base, view = numbers((100,))
    given = {"base": base, "part": base[10:20], "back": view[::-1], "host": np.ones((2, 2), "int8"), "other": np.zeros(3)}
    with cw.share_many(given) as export:
        opened = cw.open(export)
        assert list(opened) == list(given)
        for name, one in given.items():
            np.testing.assert_array_equal(np.asarray(opened[name]), np.asarray(one))
        np.asarray(opened["base"])[15] = -1
        assert np.asarray(opened["part"])[5] == -1 == view[15]
    with pytest.raises(cw.InvalidUse):
        cw.share_many({})


def test_arrays_of_one_allocation_are_arrays_and_one_export() -> None:
    like = {"weight": np.ones((3, 5), "float32"), "bias": ((7,), "int8"), "none": ((0, 4), float), "one": ((), "bfloat16"), "last": (300, "int64")}
    arrays = cw.empty_many(like)
    assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == {
        "weight": ((3, 5), "float32"), "bias": ((7,), "int8"), "none": ((0, 4), "float64"), "one": ((), "bfloat16"), "last": ((300,), "int64")}  # fmt: skip
    starts = [array.ptr for array in arrays.values()]
    assert all((start - starts[0]) % 256 == 0 for start in starts) and max(starts) - starts[0] < 2048
    for number, name in enumerate(["weight", "bias", "last"]):
        arrays[name][...] = number
    assert [arrays[name].numpy().sum() for name in ["weight", "bias", "last"]] == [0, 7, 600], "none lies in another"
    with cw.share_many(arrays) as export, cw.share(arrays["weight"]) as single:
        # The ticket of one array is mostly what names its allocation.
        assert len(export.ticket) < 2 * len(single.ticket) + 5 * 150
        opened = cw.open(export)
        opened["last"][299] = 8
        assert opened["weight"].numpy().shape == (3, 5) and arrays["last"].numpy()[299] == 8
    kept = arrays["last"].numpy()
    del arrays, opened
    gc.collect()
    assert kept[299] == 8 and cw.empty_many({}) == {}
    for wrong in [{"a": ((-1,), "int8")}, {"a": ((3,), "float31")}, {"a": ((1 << 40, 1 << 40), "int8")}]:
        with pytest.raises(cw.CausewayError):
            cw.empty_many(wrong)
    assert all(array.is_read_only is False for array in cw.empty_many({"a": (3, "int8")}, read_only=True).values())


def test_damaged_tickets_are_refused_and_nothing_else_happens() -> None:
    shared, _ = numbers((4,))
    random.seed(16)
    with cw.share(shared) as export:
        ticket = export.ticket
        for at in range(len(ticket)):
            for other in random.sample("0123456789abcdefghjkmnpqrstvwxyz-", 3):
                damaged = ticket[:at] + other + ticket[at + 1 :]
                if damaged != ticket:
                    with pytest.raises(cw.CausewayError):
                        cw.open(damaged)
        for text in ["", "cw1-", "cw1-py-", "cw1-mem-", "cw2-py-00", ticket[:-1], ticket + "0", "\0" * 10, "é" * 9]:
            with pytest.raises(cw.InvalidTicket):
                cw.open(text)
        assert cw.open(" " + ticket.upper() + "\n").shape == (4,)
    with pytest.raises(TypeError):
        cw.open(7)


def test_deadlines_are_numbers_of_seconds() -> None:
    for timeout in [-1.0, float("nan")]:
        with pytest.raises(cw.InvalidUse, match="from 0 to 1e19, or None"):
            cw.open("cw1-py-0", timeout=timeout)
    with pytest.raises(cw.InvalidUse, match="from 0 to 1e19, or None"):
        cw.share(np.ones(3), expires=float("inf"))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python classes are buffers from Python 3.12 on")
def test_an_array_is_a_buffer() -> None:
    shared, view = numbers((2, 3))
    assert memoryview(shared).tolist() == view.tolist()


def test_a_memoryview_has_the_shape_of_its_array_and_bytes_where_it_has_no_such_elements() -> None:
    scalar = cw.array(np.array(7, "int32")).memoryview()
    assert (scalar.shape, scalar.tolist()) == ((), 7)
    halves = cw.array(np.ones(2, "float16"))
    assert halves.memoryview().tobytes() == np.ones(2, "float16").tobytes()
    assert np.asarray(halves).dtype == "float16"


def test_a_memoryview_is_the_memory_and_keeps_it() -> None:
    shared, view = numbers((2, 3))
    buffer = shared.memoryview()
    buffer[1, 2] = 9
    assert view[1, 2] == 9 and buffer.shape == (2, 3)
    del shared, view
    gc.collect()
    assert buffer[1, 2] == 9
    with pytest.raises(BufferError):
        cw.empty((2, 3))[:, ::2].memoryview()


def test_what_needs_numpy_says_so_and_what_does_without() -> None:
    code = """
import sys
sys.modules["numpy"] = None
import causeway_ipc as cw
array = cw.empty(3, "int32")
array.memoryview()[:] = memoryview(bytearray(12)).cast("i")
with cw.share(array) as export:
    assert cw.open(export).memoryview().tolist() == [0, 0, 0]
try:
    array[:] = 1
except ModuleNotFoundError as error:
    assert "pip install numpy" in str(error) and "memoryview" in str(error)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_arrays_are_copied_as_numpys_are_and_pickled_by_multiprocessing_alone() -> None:
    import copy
    import pickle

    shared, view = numbers((2, 3))
    assert copy.copy(shared[::-1]).ptr == shared[1].ptr
    deep = copy.deepcopy({"a": shared[::-1]})["a"]
    view[0, 0] = 77
    assert deep.tolist() == [[3, 4, 5], [0, 1, 2]]
    for one in [shared, cw.Event(), cw.Channel()]:
        with pytest.raises(TypeError, match="ticket"):
            pickle.dumps(one)


def test_one_element_and_all_of_them_are_numbers() -> None:
    shared, view = numbers((2, 3))
    assert shared[1, 2].item() == 5.0 and shared.tolist() == view.tolist()
    with pytest.raises(ValueError):
        shared.item()


def test_arrays_without_memory_are_refused() -> None:
    class Nowhere:
        __array_interface__ = {"shape": (10,), "typestr": "<f8", "data": (0, False), "version": 3}

    with pytest.raises(cw.InvalidUse, match="address 0"):
        cw.share(Nowhere())
    with pytest.raises(cw.InvalidUse, match="address 0"):
        cw.share_many({"a": Nowhere()})


def test_an_interface_may_name_a_buffer_in_place_of_an_address() -> None:
    values = np.arange(6, dtype="<i4").reshape(2, 3)

    class Image:
        __array_interface__ = {"shape": (2, 3), "typestr": "<i4", "data": values.tobytes(), "version": 3}

    class Part:
        __array_interface__ = {"shape": (2, 3), "typestr": "<i4", "data": bytearray(b"head" + values.tobytes()), "offset": 4, "version": 3}

    for given in [Image(), Part()]:
        with cw.share(given) as export:
            assert np.array_equal(cw.open(export.ticket), values)


def test_more_than_a_device_has_is_a_lack_of_memory() -> None:
    for allocate in [lambda: cw.empty(1 << 55, "int8"), lambda: cw.share(np.broadcast_to(np.int8(1), (1 << 45,)))]:
        with pytest.raises(MemoryError, match="cpu has"):
            allocate()


def test_buffers_of_every_width_are_known_by_it() -> None:
    for kind in [ctypes.c_int8, ctypes.c_uint16, ctypes.c_int, ctypes.c_long, ctypes.c_ulonglong, ctypes.c_double, ctypes.c_bool]:
        values = (kind * 3)(0, 1, 1)
        with cw.share(values) as export:
            opened = cw.open(export)
            assert opened.itemsize == ctypes.sizeof(kind) and opened.tolist() == list(values)
    for code in "bBhHiIlLqQfd":
        values = array.array(code, [0, 1, 2])
        with cw.share(values) as export:
            opened = cw.open(export)
            assert opened.itemsize == values.itemsize and opened.tolist() == values.tolist()
    other_order = ctypes.c_int32.__ctype_be__ if sys.byteorder == "little" else ctypes.c_int32.__ctype_le__
    with pytest.raises(TypeError, match="format"):
        cw.share((other_order * 3)(1, 2, 3))


def test_one_length_is_any_index_and_many_are_by_name() -> None:
    assert cw.empty(np.int64(5)).shape == (5,) and cw.empty(True).shape == (1,)
    for wrong in [[np.ones(3)], None, np.ones(3)]:
        with pytest.raises(TypeError, match="by their names"):
            cw.share_many(wrong)


def test_numpy_gets_a_copy_where_it_asks_for_one() -> None:
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for dtype in ["bfloat16", "float8_e5m2", "float32"]:
        shared = cw.empty(4, dtype)
        shared[:] = 1
        copy, view = np.array(shared, copy=True), np.asarray(shared)
        copy[:] = 2
        assert view.tolist() == [1] * 4 and not np.shares_memory(copy, view)
        assert np.array(shared, "float64", copy=True).tolist() == np.asarray(shared, "float64").tolist() == [1] * 4
        if int(np.__version__.split(".")[0]) >= 2:
            assert np.shares_memory(np.array(shared, copy=False), view)
            with pytest.raises(ValueError):
                np.array(shared, "float64", copy=False)


def test_types_are_spelt_as_numpy_spells_them() -> None:
    for spelt in ["f4", "<f4", "=f8", "i1", "u8", "c16", "float", "int", "bool", "complex", "|u1"]:
        assert cw.empty(2, spelt).dtype == np.dtype(spelt).name
    with pytest.raises(cw.InvalidUse, match="byte order"):
        cw.empty(2, np.dtype("f4").newbyteorder("S").str)
    with pytest.raises(TypeError, match="asarray"):
        cw.share([1, 2])
    with pytest.raises(TypeError, match="ticket"):
        cw.share(cw.share(cw.empty(1)))


def test_another_byte_order_is_refused_and_not_taken_for_this_machines() -> None:
    other = np.dtype("f4").newbyteorder("S")
    for make in [lambda: cw.empty(3, other), lambda: cw.empty_many({"a": (3, other)})]:
        with pytest.raises(cw.InvalidUse, match="byte order"):
            make()
    assert cw.empty(3, np.dtype("=f4")).dtype == "float32"


def test_an_array_is_iterable_and_the_module_says_its_version() -> None:
    shared, view = numbers((3, 4))
    assert isinstance(shared, Iterable) and [row.tolist() for row in shared] == view.tolist()
    with pytest.raises(TypeError):
        iter(cw.empty(()))
    assert cw.__version__.count(".") == 2


def test_a_broadcast_array_is_shared_in_little_memory_beside_its_copy() -> None:
    code = """
import resource, numpy as np, causeway_ipc as cw
cw.share(np.ones(1)).close()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (160 << 20), -1))
wide = np.broadcast_to(np.arange(4, dtype="int8"), (1 << 23, 2, 4))[:, :, ::2]
with cw.share(wide) as export:
    assert (np.asarray(export.array)[-3:] == [[0, 2], [0, 2]]).all()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_withdrawn_ticket_says_what_withdrew_it_and_no_message_has_the_ticket() -> None:
    ticket = cw.share(cw.empty(4)).ticket
    with pytest.raises(cw.Withdrawn, match=r"share\(array\)\.ticket alone"):
        cw.open(ticket)
    with cw.share(cw.empty(4)) as export:
        for damaged in [export.ticket.replace("cw1-py-", "cw1-"), export.ticket[3:], export.ticket[:-3], export.ticket.upper()[::-1]]:
            with pytest.raises(cw.CausewayError) as raised:
                cw.open(damaged)
            assert len(str(raised.value)) < 200, str(raised.value)


def test_an_array_of_one_element_is_a_number() -> None:
    array = cw.array(np.array([3, 0, 7], dtype="int32"))
    assert (int(array[0]), float(array[2]), complex(array[0]), [9, 8, 7, 6][array[0]]) == (3, 7.0, 3, 6)
    assert bool(array[0]) and not array[1] and not cw.empty(1)[:0].tolist()
    array[1] = array[2]
    assert array.tolist() == [3, 7, 7]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(array)
    with pytest.raises(TypeError):
        int(array)


def test_an_empty_view_of_an_empty_array_is_shared() -> None:
    view = cw.empty((4, 0))[-2]
    with cw.share(view) as export:
        opened = cw.open(export.ticket)
    assert opened.shape == (0,) and np.asarray(opened).tolist() == []


def test_a_masked_array_is_not_shared_without_its_mask() -> None:
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for use in [cw.share, cw.array, lambda array: cw.Channel().send(array)]:
        with pytest.raises(cw.InvalidUse, match="mask"):
            use(masked)
