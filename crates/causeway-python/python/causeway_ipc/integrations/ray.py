"""Ray's actors hand each other tensors by tickets: `register()`, and `@ray.method(tensor_transport="CAUSEWAY")`.

On the CPU the receiver has the sender's tensor itself, not a copy: a tensor that does not lie in shareable memory is copied
there once, however many actors take it. On CUDA the receiver copies, for the sender's allocator takes the memory back when
Ray lets go of the object, and nobody tells it whether a receiver still reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from ray.experimental import TensorTransportManager, register_tensor_transport
from ray.experimental.rdt.tensor_transport_manager import CommunicatorMetadata, TensorTransportMetadata

import causeway_ipc

NAME = "CAUSEWAY"


@dataclass
class Metadata(TensorTransportMetadata):
    """What travels from the sender to the receivers."""

    ticket: str | None = None
    ready: str | None = None
    """The ticket of an event after which the tensors are what they should be; none on the CPU."""


class Transport(TensorTransportManager):
    """Exports stand until Ray collects the object that they are of."""

    def __init__(self) -> None:
        self._exports: dict[str, list[causeway_ipc.Export]] = {}

    def tensor_transport_backend(self) -> str:
        return NAME

    @staticmethod
    def is_one_sided() -> bool:
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        return True

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True

    def get_communicator_metadata(self, src_actor: Any, dst_actor: Any, backend: str | None = None) -> CommunicatorMetadata:
        return CommunicatorMetadata()

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[torch.Tensor]) -> Metadata:
        tensors = [tensor.detach() for tensor in rdt_object]
        metadata = Metadata(
            tensor_meta=[(tensor.shape, tensor.dtype) for tensor in tensors],
            tensor_device=tensors[0].device.type if tensors else None,
        )
        if tensors:
            exports = [causeway_ipc.share_many({str(number): tensor for number, tensor in enumerate(tensors)})]
            metadata.ticket = exports[0].ticket
            if tensors[0].device.type == "cuda":
                event = causeway_ipc.Event(str(tensors[0].device))
                event.record(torch.cuda.current_stream(tensors[0].device))
                exports.append(causeway_ipc.share(event))
                metadata.ready = exports[1].ticket
            self._exports[obj_id] = exports
        return metadata

    def recv_multiple_tensors(
        self,
        obj_id: str,
        tensor_transport_metadata: Metadata,
        communicator_metadata: CommunicatorMetadata,
        target_buffers: list[torch.Tensor] | None = None,
    ) -> list[torch.Tensor]:
        metadata = tensor_transport_metadata
        if metadata.ticket is None:
            return []
        opened = causeway_ipc.open(metadata.ticket)
        tensors: list[torch.Tensor] = [opened[str(number)].torch() for number in range(len(opened))]
        stream = None
        if metadata.ready is not None:
            stream = torch.cuda.current_stream(tensors[0].device)
            causeway_ipc.open(metadata.ready).wait(stream)
        if target_buffers:
            tensors = [buffer.copy_(tensor) for buffer, tensor in zip(target_buffers, tensors, strict=True)]
        elif stream is not None:
            tensors = [tensor.clone() for tensor in tensors]
        if stream is not None:
            stream.synchronize()
        return tensors

    def send_multiple_tensors(self, tensors: Any, tensor_transport_metadata: Any, communicator_metadata: Any) -> None:
        raise NotImplementedError("the receiver opens what the sender has shared: nothing is sent")

    def garbage_collect(self, obj_id: str, tensor_transport_meta: Any, tensors: Any) -> None:
        for export in self._exports.pop(obj_id, []):
            export.close()

    def abort_transport(self, obj_id: str, communicator_metadata: Any) -> None:
        """Opening has a deadline of its own: there is nothing to stop."""


def register() -> None:
    """Makes the transport known, once for each process that creates actors, before it creates them."""
    register_tensor_transport(NAME, ["cpu", "cuda"], Transport, torch.Tensor)
