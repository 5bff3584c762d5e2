"""What is known of a Run in a queue of Kueue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import JsonObject


class PodUpdate(NamedTuple):
    """What Kueue wants in the pods of a pod set: of its flavors and admission checks."""

    node_selector: Mapping[str, str] = {}
    tolerations: tuple[JsonObject, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    gated: bool = False
    """Kueue chooses the nodes of each pod later (a flavor with a topology)."""


class Flavor(NamedTuple):
    """A ResourceFlavor: what pods need for its nodes."""

    node_labels: Mapping[str, str]
    tolerations: tuple[JsonObject, ...]


class Assignment(NamedTuple):
    """What a pod set was given: flavors by name, and what admission checks add."""

    flavors: tuple[str, ...]
    update: PodUpdate


class StoredCondition(NamedTuple):
    """A condition of a Workload. since: of its status, RFC 3339."""

    true: bool
    reason: str = ""
    message: str = ""
    since: str = ""


class StoredPodSet(NamedTuple):
    """A pod set of a Workload: how many pods, and what this controller noted about them.

    role, indexes: the replicas, as intervals; empty if an earlier version made the Workload.
    digest, given_up, set_hash: as of a PodSet.
    """

    name: str
    pods: int
    role: str = ""
    indexes: str = ""
    digest: str = ""
    given_up: frozenset[str] = frozenset()
    set_hash: str = ""


class StoredWorkload(NamedTuple):
    """The Workload of a Run, as the API server has it."""

    name: str
    namespace: str
    run_uid: str
    uid: str = ""
    version: str = ""
    queue: str = ""
    deleted: bool = False
    active: bool = True
    conditions: Mapping[str, StoredCondition] = {}
    checks: str = ""
    """What the admission checks that are not ready say."""
    assignments: Mapping[str, Assignment] = {}
    pod_sets: tuple[StoredPodSet, ...] = ()

    @property
    def holds_quota(self) -> bool:
        """Whether quota is reserved for it."""
        return self.has("QuotaReserved") or self.has("Admitted")

    def has(self, condition: str) -> bool:
        """Return whether the condition is true."""
        stored_condition = self.conditions.get(condition)
        return stored_condition is not None and stored_condition.true


class Queueing(NamedTuple):
    """What is known of the queue of a Run.

    updates: by pod set, of an admitted Workload.
    unknown: why the Workload cannot be seen, or not be used; empty if it can.
    lasting: that is so until the Run, its Workload or a flavor changes.
    withheld: why no pod can be created, while those that run go on; empty if some can.
    served: whether the API server has Kueue's definitions.
    position: of the Run in its ClusterQueue, from 1; None if Kueue does not tell it.
    look: whether its pods are to be tried again, before they are created or the Run waits on.
    pause: seconds from an eviction by this controller until the Run queues again.
    """

    workload: StoredWorkload | None = None
    updates: Mapping[str, PodUpdate] = {}
    unknown: str = ""
    lasting: bool = False
    withheld: str = ""
    served: bool = True
    position: int | None = None
    look: bool = False
    pause: float = 0.0


NO_QUEUE: Final = Queueing()
