"""Weights of a trainer for vLLM's workers on the same machine, under one ticket for many tensors: `register()` in both, then
`WeightTransferConfig(backend="causeway")` in vLLM and `TrainerInit(rank=…)` in the trainer.

The workers read the trainer's memory while `update_weights` runs; when that returns, they have loaded it, and the ticket is
withdrawn. Tensors of an FSDP trainer are gathered by its `WeightSource`, `chunk_bytes` at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm.distributed.weight_transfer.base import (
    TrainerInitInfo,
    TrainerWeightTransferEngine,
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory

import causeway_ipc

NAME = "causeway"


@dataclass
class WorkerInit(WeightTransferInitInfo):
    """Nothing has to be agreed on."""


@dataclass
class Update(WeightTransferUpdateInfo):
    """A ticket for each device of the trainer's."""

    tickets: dict[str, str]


def place_of(device: torch.device) -> str:
    """What tells a device from others, in all processes."""
    return str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else device.type


class WorkerEngine(WeightTransferEngine[WorkerInit, Update]):
    """Loads what a ticket opens."""

    init_info_cls = WorkerInit
    update_info_cls = Update

    def init_transfer_engine(self, init_info: WorkerInit) -> None:
        pass

    def start_weight_update(self) -> None:
        from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

        initialize_layerwise_reload(self.model)

    def finish_weight_update(self) -> None:
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

        finalize_layerwise_reload(self.model, self.model_config)

    def receive_weights(self, update_info: Update) -> None:
        place = place_of(self.device)
        if place not in update_info.tickets:
            raise ValueError(f"the trainer has no weights on {place}, only on {', '.join(update_info.tickets)}")
        opened = causeway_ipc.open(update_info.tickets[place])
        self.model.load_weights([(name, array.torch()) for name, array in opened.items()])
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()  # the trainer's memory is its own again after this

    def shutdown(self) -> None:
        pass


@dataclass
class TrainerInit(TrainerInitInfo):
    """What the trainer is started with."""

    backend: ClassVar[str] = NAME
    chunk_bytes: int = 1 << 30


class TrainerEngine(TrainerWeightTransferEngine[TrainerInit]):
    """Shares each chunk of weights with the workers as long as they load it."""

    init_info_cls = TrainerInit
    chunk_bytes: int

    @classmethod
    def trainer_init(cls, init_info: TrainerInit, *, client: Any, source: Any = None) -> TrainerEngine:
        if source is None or not source.implements_iter_full():
            raise ValueError("a WeightSource with iter_full() is needed")
        engine = cls(client=client, source=source, is_sender=init_info.is_sender, rank=init_info.rank)
        engine.chunk_bytes = init_info.chunk_bytes
        if engine.is_sender:
            client.init_weight_transfer_engine({})
        return engine

    def send_weights(self) -> None:
        if self.is_sender:
            self.client.start_weight_update()
        for chunk in self._chunks():
            device = next(iter(chunk.values())).device
            if device.type == "cuda":
                torch.cuda.current_stream(device).synchronize()
            with causeway_ipc.share_many(chunk) as export:
                tickets = self._gathered({place_of(device): export.ticket})
                if self.is_sender:
                    self.client.update_weights({"tickets": tickets})
                self._gathered({})  # the others' tickets stand until the workers have loaded
        if self.is_sender:
            self.client.finish_weight_update()

    def _chunks(self) -> Iterator[dict[str, torch.Tensor]]:
        chunk: dict[str, torch.Tensor] = {}
        for name, tensor in self.source.iter_full():
            chunk[name] = tensor.detach()
            if sum(one.nbytes for one in chunk.values()) >= self.chunk_bytes:
                yield chunk
                chunk = {}
        if chunk:
            yield chunk

    def _gathered(self, tickets: dict[str, str]) -> dict[str, str]:
        """The tickets of all ranks."""
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return tickets
        of_all: list[dict[str, str]] = [{}] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(of_all, tickets)
        return {place: ticket for one in of_all for place, ticket in one.items()}


def register() -> None:
    """Makes both engines known to vLLM, in the trainer and, by vLLM's plugins, in its workers."""
    WeightTransferEngineFactory.register_engine(NAME, __name__, "WorkerEngine")
    WeightTransferTrainerFactory.register_engine(NAME, __name__, "TrainerEngine")
