"""Whether a pod leads its run, where only the object that made it shows that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from webhook.errors import ClusterError
from webhook.identity import leader_ref
from webhook.placement.trace import warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.decision import ReceivedPod
    from webhook.sources.marks import ObjectRef
    from webhook.sources.table import SourceTable


class Objects(Protocol):
    """A source of facts about the objects that make pods."""

    async def led(self, namespace: str, ref: ObjectRef, name: str, sources: SourceTable) -> bool:
        """Return True if the object has a pod that leads by its role. Raises ClusterError."""


async def settle_leader(
    received: ReceivedPod, sources: SourceTable, objects: Objects | None
) -> tuple[ReceivedPod, Sequence[str]]:
    """Return the pod with its object's word on who leads, and warnings.

    Only a coordinator whose labels leave a doubt causes a read. Without an answer the labels
    decide: a coordinator too many costs less than one too few.
    """
    own, identity = received.own, received.identity
    if objects is None or not identity.coordinator:
        return received, ()
    ref = leader_ref(identity, own.labels, own.annotations, sources)
    if ref is None:
        return received, ()
    name = own.labels.get(ref.label, "")
    try:
        led = await objects.led(received.arrival.namespace, ref, name, sources)
    except ClusterError as error:
        # A warning is cut at its end, and the error's address may be long.
        doubt = f"leads by its labels alone: {ref.kind} {name} cannot be read: {error}"
        return received, [warning(doubt)]
    if led:
        received = received._replace(identity=identity._replace(coordinator=False))
    return received, ()
