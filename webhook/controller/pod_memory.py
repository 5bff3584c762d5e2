"""What a leader knows of pods beside its caches: those that are gone, and those not created yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.kube.cache import Change
    from webhook.run.observed import OwnedPod

# Deleted pods to remember, of all runs together. Each takes some 2 KiB, with the last lines of its
# log. Of others the status knows the node.
MOST_GONE: Final = 10_000


class PodMemory:
    """Deleted pods until they are counted, and names of pods, by the Run's uid.

    Names: of planned pods that do not exist, and of those that left the watch. These may be there
    without their label, until a live read says that they are not.

    Only while this process leads: another leader counts and creates pods too.
    """

    def __init__(self) -> None:
        self._leads = False
        # By the Run's uid and the pod's; the oldest first.
        self._gone: dict[str, dict[str, OwnedPod]] = {}
        self._count = 0
        self._uncreated: dict[str, set[str]] = {}
        self._unwatched: dict[str, set[str]] = {}

    def begin(self) -> None:
        """Remember from now on; nothing is known of the time before."""
        self.end()
        self._leads = True

    def end(self) -> None:
        """Forget everything."""
        self._leads = False
        self._gone.clear()
        self._count = 0
        self._uncreated.clear()
        self._unwatched.clear()

    def pod_changed(self, change: Change[OwnedPod]) -> None:
        """Remember a pod that is gone, or replaced by another one of its name."""
        before, after = change.before, change.after
        if not self._leads or before is None or (after and after.uid == before.uid):
            return
        if before.role:
            self._unwatched.setdefault(before.run_uid, set()).add(before.name)
        gone_by_uid = self._gone.setdefault(before.run_uid, {})
        self._count += before.uid not in gone_by_uid
        gone_by_uid[before.uid] = before
        if self._count > MOST_GONE:
            # No run takes the place of all others.
            largest = max(self._gone, key=lambda run_uid: len(self._gone[run_uid]))
            self.forget(largest, (next(iter(self._gone[largest])),))

    def gone(self, run_uid: str) -> tuple[OwnedPod, ...]:
        """Return the run's deleted pods, the latest last."""
        return tuple(self._gone.get(run_uid, {}).values())

    def forget(self, run_uid: str, uids: Iterable[str]) -> None:
        """Forget deleted pods that are counted."""
        gone_by_uid = self._gone.get(run_uid, {})
        for uid in uids:
            self._count -= gone_by_uid.pop(uid, None) is not None
        if not gone_by_uid:
            self._gone.pop(run_uid, None)

    def forget_run(self, run_uid: str) -> None:
        """Forget all pods of a Run that is gone."""
        self._count -= len(self._gone.pop(run_uid, {}))
        self._uncreated.pop(run_uid, None)
        self._unwatched.pop(run_uid, None)

    def unwatched(self, run_uid: str) -> frozenset[str]:
        """Return the names of the pods that left the watch and are not known to be gone."""
        return frozenset(self._unwatched.get(run_uid, ()))

    def read(self, run_uid: str, pod_names: Iterable[str], absent: Iterable[str]) -> None:
        """Record which pods a live read found that the watch does not tell of, and which not."""
        if self._leads:
            unwatched_pods = self._unwatched.setdefault(run_uid, set())
            unwatched_pods.update(pod_names)
            unwatched_pods.difference_update(absent)
            if not unwatched_pods:
                del self._unwatched[run_uid]

    def forget_unwatched(self, run_uid: str) -> None:
        """Forget the names of pods that left the watch: the stored status has them."""
        self._unwatched.pop(run_uid, None)

    def uncreated(self, run_uid: str) -> frozenset[str]:
        """Return the names of the planned pods of which it is known that they do not exist."""
        return frozenset(self._uncreated.get(run_uid, ()))

    def plan(self, run_uid: str, pods: Iterable[str]) -> None:
        """Record pods that do not exist, and that the stored status plans from now on."""
        if self._leads:
            self._uncreated.setdefault(run_uid, set()).update(pods)

    def sent(self, run_uid: str, pod: str) -> None:
        """Record that the creation of a pod is being sent: it may exist, whatever the answer is."""
        planned = self._uncreated.get(run_uid, set())
        planned.discard(pod)
        if not planned:
            self._uncreated.pop(run_uid, None)
