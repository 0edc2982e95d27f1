"""Ray, vLLM and LMCache through their own hooks, where they are installed; the way of LMCache's descriptors without it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import causeway_ipc as cw
import pytest
from causeway_ipc.integrations import lmcache

RESOLVE = """
import os
from causeway_ipc.integrations import lmcache
for line in sys.stdin:
    try:
        descriptor = lmcache.resolve(bytes.fromhex(line))
        print(os.pread(descriptor, 100, 0).decode())
        os.close(descriptor)
    except cw.CausewayError as error:
        print(type(error).__name__)
"""


class Wrapper:
    """LMCache's, as far as its descriptor is concerned."""

    def __init__(self, export: bytes, contents: bytes) -> None:
        self.export, self.descriptor = export, os.memfd_create("test")
        os.write(self.descriptor, contents)

    def fd_payload(self) -> tuple[bytes, int] | None:
        return None if self.descriptor < 0 else (self.export, self.descriptor)

    def close(self) -> None:
        os.close(self.descriptor)
        self.descriptor = -1


@pytest.fixture
def shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CAUSEWAY_DIR", str(tmp_path))
    monkeypatch.setattr(lmcache, "_sender", None)
    yield tmp_path


def test_a_descriptor_of_lmcache_is_handed_to_another_process(shared_folder: Path, peer: Any) -> None:
    wrappers = [Wrapper(os.urandom(16), f"memory {number}".encode()) for number in range(3)]
    for wrapper in wrappers:
        lmcache.offer(wrapper)
    receiver = peer(RESOLVE)
    for _ in range(2):
        for number, wrapper in enumerate(wrappers):
            receiver.tell(wrapper.export.hex())
            assert receiver.hear() == f"memory {number}"
    wrappers[0].close()
    closed, dropped = wrappers[0].export, wrappers[1].export
    del wrapper, wrappers[1]
    for export in [closed, dropped, os.urandom(16)]:
        receiver.tell(export.hex())
        assert receiver.hear() in ("Withdrawn", "ExporterGone")
    deadline = time.monotonic() + 20
    while len(list((shared_folder / "lmcache").iterdir())) != 2:  # a socket, and one export
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_sender_of_descriptors_that_was_killed_is_gone_and_a_folder_of_others_is_refused(shared_folder: Path, peer: Any) -> None:
    sender = peer("""
import os
sys.path.insert(0, sys.argv[1])
from test_integrations import Wrapper
from causeway_ipc.integrations import lmcache
wrapper = Wrapper(bytes(16), b"")
lmcache.offer(wrapper)
print("offered")
sys.stdin.read()
""", str(Path(__file__).parent))  # fmt: skip
    sender.hear()
    os.close(lmcache.resolve(bytes(16)))
    sender.kill()
    with pytest.raises(cw.ExporterGone):
        lmcache.resolve(bytes(16))
    (shared_folder / "lmcache").chmod(0o755)
    with pytest.raises(cw.NotPermitted, match="0700"):
        lmcache.resolve(bytes(16))


def test_lmcaches_own_hook_resolves(shared_folder: Path) -> None:
    wrappers = pytest.importorskip("lmcache.v1.platform.devices.cuda.ipc_wrapper", reason="LMCache is not installed")
    lmcache.install_receiver()
    wrapper = Wrapper(os.urandom(16), b"")
    lmcache.offer(wrapper)
    descriptor = wrappers._resolve_vmm_fd(wrapper.export)
    assert os.path.sameopenfile(descriptor, wrapper.descriptor)
    os.close(descriptor)
    wrappers.set_vmm_fd_resolver(None)


RAY = """
import ray, torch
from causeway_ipc.integrations import ray as over_ray

over_ray.register()

@ray.remote
class Actor:
    @ray.method(tensor_transport="CAUSEWAY")
    def make(self):
        self.tensors = [torch.arange(1000.0), torch.ones(3, 4, dtype=torch.bfloat16).t()]
        return self.tensors
    @ray.method(tensor_transport="CAUSEWAY")
    def shareable(self):
        import causeway_ipc
        self.tensor = causeway_ipc.empty(10, "float32").torch().zero_()
        return self.tensor
    def total(self, tensors):
        return [float(tensor.double().sum()) for tensor in tensors], [list(tensor.shape) for tensor in tensors]
    def write(self, tensor):
        tensor[3] = 7
    def read(self):
        return float(self.tensor[3])
    def exports(self):
        from ray.experimental.rdt.util import get_tensor_transport_manager
        return len(get_tensor_transport_manager("CAUSEWAY")._exports)

ray.init(num_cpus=3, include_dashboard=False, logging_level="ERROR")
one, other, third = (Actor.remote() for _ in range(3))
made = one.make.remote()
for receiver in [other, third, other]:
    assert ray.get(receiver.total.remote(made)) == ([499500.0, 12.0], [[1000], [4, 3]])
shareable = one.shareable.remote()
ray.get(other.write.remote(shareable))
assert ray.get(one.read.remote()) == 7.0, "the receiver has the sender's tensor itself"
assert ray.get(one.exports.remote()) == 2
del made, shareable
import time
deadline = time.monotonic() + 20
while ray.get(one.exports.remote()):
    assert time.monotonic() < deadline
    time.sleep(0.1)
print("right")
"""


def test_rays_actors_hand_over_tensors(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("torch", reason="PyTorch is not installed")
    script = tmp_path / "actors.py"  # Ray finds the classes by their file
    script.write_text(RAY)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0 and "right" in done.stdout, done.stderr


class Model:
    """What vLLM's engine needs of a worker's model."""

    def __init__(self) -> None:
        self.loaded: dict[str, Any] = {}

    def load_weights(self, weights: list[tuple[str, Any]]) -> None:
        self.loaded.update((name, tensor.clone()) for name, tensor in weights)


def test_vllms_engines_move_a_trainers_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    base = pytest.importorskip("vllm.distributed.weight_transfer.base", reason="vLLM is not installed")
    from causeway_ipc.integrations import vllm as over_vllm
    from vllm.config.weight_transfer import WeightTransferConfig
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory

    over_vllm.register()
    model, steps, tickets = Model(), [], []
    configuration = type("Config", (), {"parallel_config": None, "model_config": None})()
    worker = WeightTransferEngineFactory.create_engine(
        WeightTransferConfig(backend="causeway"), configuration, torch.device("cpu"), model
    )
    monkeypatch.setattr(type(worker), "start_weight_update", lambda self: steps.append("start"))
    monkeypatch.setattr(type(worker), "finish_weight_update", lambda self: steps.append("finish"))

    class Client:
        def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
            worker.init_transfer_engine(worker.parse_init_info(init_info))

        def start_weight_update(self) -> None:
            worker.start_weight_update()

        def update_weights(self, update_info: dict[str, Any]) -> None:
            steps.append("update")
            tickets.append(update_info["tickets"]["cpu"])
            worker.receive_weights(worker.parse_update_info(update_info))

        def finish_weight_update(self, weight_version: str | None = None) -> None:
            worker.finish_weight_update()

    trained = torch.nn.Sequential(torch.nn.Linear(100, 50), torch.nn.Linear(50, 2))
    trainer = WeightTransferTrainerFactory.trainer_init(
        over_vllm.TrainerInit(rank=0, chunk_bytes=15_000), client=Client(), source=base.ModuleSource(trained)
    )
    trainer.send_weights()
    assert steps == ["start", "update", "update", "finish"]
    assert model.loaded.keys() == trained.state_dict().keys()
    assert all(torch.equal(model.loaded[name], tensor) for name, tensor in trained.state_dict().items())
    for ticket in tickets:
        with pytest.raises(cw.Withdrawn):
            cw.open(ticket)
    with pytest.raises(ValueError, match="only on cuda-7"):
        worker.receive_weights(over_vllm.Update({"cuda-7": tickets[0]}))
