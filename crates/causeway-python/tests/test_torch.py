"""PyTorch: its tensors over our arrays, and ours over its tensors; through its own multiprocessing too."""

from __future__ import annotations

import importlib
import multiprocessing.pool
import os
import pickle
import time
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing as cw_multiprocessing
import numpy as np
import pytest
from causeway_ipc import _outbox
from conftest import PATIENCE, becomes

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

TYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
         "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_tensor_of_each_type_comes_out_of_its_ticket(name: str) -> None:
    dtype = getattr(torch, name)
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    with cw.share(tensor) as export:
        opened = cw.open(export)
        assert opened.dtype == name and opened.torch().dtype == dtype
        assert torch.equal(opened.torch().to(torch.complex128), tensor.to(torch.complex128))
        assert cw.empty(2, dtype).dtype == name


def test_a_tensor_over_an_array_is_shared_in_place() -> None:
    tensor = cw.empty((4, 4), "float32").torch()
    tensor[:] = torch.arange(16.0).reshape(4, 4)
    with cw.share(tensor.t()[1:, ::2]) as export:
        opened = cw.open(export).torch()
        assert torch.equal(opened, tensor.t()[1:, ::2])
        opened[0, 0] = -1
    assert tensor[0, 1] == -1


def test_the_ways_that_torch_takes_arrays() -> None:
    array = cw.empty(3, "float32")
    array[:] = 2
    assert torch.from_dlpack(array).data_ptr() == array.ptr
    assert torch.as_tensor(np.asarray(array)).data_ptr() == array.ptr
    assert torch.from_dlpack(array, copy=True).data_ptr() != array.ptr
    assert torch.asarray(array).sum() == 6


def test_a_state_dict_travels_in_one_ticket(peer: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.Linear(20, 1))
    with cw.share_many(model.state_dict()) as export:
        other = peer("""
import torch
state = {name: array.torch() for name, array in cw.open(sys.argv[1]).items()}
model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.Linear(20, 1))
model.load_state_dict(state)
print(float(model(torch.ones(10)).detach()))
""", export.ticket)  # fmt: skip
        assert abs(float(other.hear()) - float(model(torch.ones(10)).detach())) < 1e-5


def add_one(orders: Any, answers: Any) -> None:
    tensor = orders.get()
    with torch.no_grad():
        tensor += 1
    answers.put(tensor)
    orders.get()


def test_tensors_go_through_torchs_queues() -> None:
    cw_multiprocessing.install()
    context = torch.multiprocessing.get_context("spawn")
    orders, answers = context.Queue(), context.Queue()
    process = context.Process(target=add_one, args=(orders, answers))
    process.start()
    shared = torch.nn.Parameter(cw.empty(1000, "float32").torch().zero_())
    orders.put(shared)
    back = answers.get(timeout=60)
    assert float(shared[0].detach()) == 1 and isinstance(back, torch.nn.Parameter) and back.requires_grad
    orders.put(torch.zeros(3))  # torch's own way
    process.join(60)
    assert process.exitcode == 0


def rest(array: Any) -> None:
    time.sleep(10 * PATIENCE)


def put_and_end(queue: Any) -> None:
    queue.cancel_join_thread()
    queue.put(np.ones(30_000))
    assert becomes(lambda: bool(queue._reader.poll(0)))


queues = importlib.import_module("torch.multiprocessing.queue")
context = torch.multiprocessing.get_context("fork")


class Pool(multiprocessing.pool.Pool):
    """As PyTorch's own, with PyTorch's connections: that one cannot be made by CPython 3.8 or newer."""

    def _setup_queues(self) -> None:
        super()._setup_queues()
        for queue in [self._inqueue, self._outqueue]:
            queue._reader, queue._writer = map(queues.ConnectionWrapper, [queue._reader, queue._writer])
        self._quick_put, self._quick_get = self._inqueue._writer.send, self._outqueue._reader.recv


def test_pools_and_queues_of_pytorch_keep_nothing_that_nobody_reads() -> None:
    cw_multiprocessing.install()
    with Pool(2, context=context) as pool:
        assert pool.apply(np.sum, (np.ones(30_000),)) == 30_000
        pool.map_async(rest, [np.ones(30_000) for _ in range(40)], chunksize=1)
        assert becomes(lambda: cw_multiprocessing.outstanding() == 38)  # two workers have one each
    assert cw_multiprocessing.outstanding() == 0
    for queue in [queues.Queue(ctx=context), queues.SimpleQueue(ctx=context)]:
        queue.put(np.ones(30_000))
        assert becomes(lambda: bool(queue._reader.poll(0)))
        cw_multiprocessing.give_up(queue)
        assert cw_multiprocessing.outstanding() == 0
        with pytest.raises(cw.Withdrawn, match="given it up"):
            queue.get()
    queue = queues.Queue(ctx=context)
    process = context.Process(target=put_and_end, args=(queue,))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0
    process.kill()


def test_a_pool_of_pytorch_goes_on_after_an_array_is_lost() -> None:
    cw_multiprocessing.install()
    with Pool(1, context=context) as pool:
        with pytest.raises(cw.ExporterGone, match="has ended before it was received"):
            float(pool.apply(of_an_ended_process)[0])
        assert pool.apply(np.sum, (np.ones(30_000),)) == 30_000


class Lost:
    """Comes as what the array of a process that has ended comes as."""

    def __reduce__(self) -> Any:
        return _outbox.receive, _lost


_lost: Any = None


def of_an_ended_process() -> Any:
    global _lost
    take, give = torch.multiprocessing.get_context("fork").Pipe(False)
    if not os.fork():
        give.send_bytes(pickle.dumps(cw_multiprocessing._send(np.ones(30_000))[1]))
        os._exit(0)
    os.wait()
    _lost = pickle.loads(take.recv_bytes())
    return [Lost()]


def test_storages_over_arrays_travel_in_place() -> None:
    import multiprocessing

    cw_multiprocessing.install()
    one, other = multiprocessing.Pipe()
    tensor = cw.empty(8, "int32").torch().zero_()
    one.send(tensor.untyped_storage())
    received = torch.empty(0, dtype=torch.int32).set_(other.recv())
    received[3] = 7
    assert tensor[3] == 7 and received.shape == (8,)
    one.send(torch.ones(3).untyped_storage())  # torch's own way
    assert other.recv().nbytes() == 12


def test_what_pytorchs_exchange_table_does_not_ask_is_asked_here() -> None:
    tensor = torch.tensor([1 + 2j, 3 + 4j])
    with pytest.raises(cw.InvalidUse, match="resolve_conj"):  # their memory has other values than they show
        cw.share(tensor.conj())
    with pytest.raises(cw.InvalidUse, match="resolve_neg"):
        cw.share(tensor.conj().imag)
    with pytest.raises(cw.InvalidUse, match="detach"):
        cw.share(torch.nn.Parameter(torch.ones(3)))
    with pytest.raises(cw.InvalidUse, match="a plain, dense copy"):
        cw.share(torch.eye(3).to_sparse())
    with pytest.raises(Exception):
        cw.share(torch.ones(3, device="meta"))
    with cw.share(tensor.conj().resolve_conj()) as export:
        assert cw.open(export).tolist() == [1 - 2j, 3 - 4j]


def test_arrays_that_tensors_cannot_be_are_refused_as_pytorch_refuses_them() -> None:
    array = cw.empty(6, "int32")
    array[:] = np.arange(6)
    with pytest.raises(cw.InvalidUse, match="flip"):
        array[::-1].torch()
    assert array[2:3][::-1].torch().tolist() == [2] and array[:0][::-1].torch().tolist() == []
    assert array[1::2].torch().tolist() == [1, 3, 5] and array.torch().data_ptr() == array.ptr
    assert cw.empty((0, 3), "float32").torch().shape == (0, 3) and cw.empty((), "float32").torch().ndim == 0


def test_the_memory_of_a_tensor_stays_as_long_as_its_export_needs_it() -> None:
    tensor = torch.arange(1000)
    with cw.share_many({"a": tensor, "b": tensor[10:20]}) as export:
        tensor.resize_(10_000).fill_(0)
        opened = cw.open(export)
        assert opened["a"].torch().sum() == 499_500 and opened["b"].tolist() == list(range(10, 20))
    array = cw.empty(1000, "int64")
    over = array.torch()
    del array
    over[:] = 5
    assert over.sum() == 5000


def test_what_cannot_be_shared_goes_by_pytorchs_own_reduction() -> None:
    cw_multiprocessing.install()
    context = torch.multiprocessing.get_context("spawn")
    one, other = context.Pipe()
    numbers = torch.tensor([1 + 2j, 3 - 4j])
    mine = cw.empty(2, "complex64").torch()
    mine.copy_(numbers)
    for source in [numbers, mine]:
        for tensor in [source.conj(), source.conj().imag, torch.nn.Parameter(source.conj(), False)]:
            one.send(tensor)
            received = other.recv()
            assert type(received) is type(tensor) and torch.equal(received.resolve_conj().resolve_neg(), tensor.resolve_conj().resolve_neg())
        one.send([source.clone()])
        assert torch.equal(other.recv()[0], source)
    halves = torch.view_as_complex(torch.arange(6.0).reshape(3, 2)).to(torch.complex32)
    quantised = torch.quantize_per_tensor(torch.arange(4.0), 0.5, 1, torch.qint8)
    one.send([halves, quantised])
    received = other.recv()
    assert received[0].dtype == torch.complex32 and torch.equal(torch.view_as_real(received[0]), torch.view_as_real(halves))
    assert torch.equal(received[1].int_repr(), quantised.int_repr()) and received[1].q_scale() == 0.5
    assert mine.resolve_conj().data_ptr() and torch.equal(mine, numbers)
