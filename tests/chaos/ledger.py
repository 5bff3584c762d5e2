"""Counts a load by three witnesses: its callers, the API server's audit log, and etcd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

from tests.bench.arena import administrator
from tests.chaos import audit
from tests.chaos.audit import Audited
from tests.chaos.connection import Pool
from tests.chaos.load import Creation, Load
from tests.chaos.stage import Tally, meanwhile
from tests.chaos.stored import Store, Stored
from tests.eventually import eventually
from webhook.sandbox.control_plane import ControlPlane

CREATIONS: Final = "creations"
FAILED: Final = "failed creations"
UNPLACED: Final = "matched pods unplaced"
REFUSED_OTHERS: Final = "unmatched pods rejected"
BEHIND: Final = "seconds that the load itself was behind"
DISAGREEMENTS: Final = "disagreements of the witnesses"
# Whatever goes wrong: no pod of a run as it came, no other pod refused, and the witnesses agree.
NEVER: Final = (UNPLACED, REFUSED_OTHERS, DISAGREEMENTS)

_SWEEP_SECONDS: Final = 5.0


class Ledger:
    """A load that goes on, and what became of it once it is over."""

    def __init__(self, plane: ControlPlane, namespace: str, load: Load) -> None:
        self.load = load
        self._plane = plane
        self._namespace = namespace
        self._store = Store(plane, namespace)
        self._audited: dict[str, Audited] = {}

    @property
    def creations(self) -> list[Creation]:
        """All of them."""
        return self.load.creations

    @property
    def stored(self) -> Stored:
        """What etcd held; complete after the load."""
        return self._store.found

    def audited(self, creation: Creation) -> Audited | None:
        """What the audit log has of it; None before the load is over."""
        return self._audited.get(creation.name)

    def failed(self, creation: Creation) -> bool:
        """Whether the pod was not created, by the log, or else by what the caller was told."""
        seen = self._audited.get(creation.name)
        return seen.status != 201 if seen else not creation.created

    def sweep(self) -> None:
        """Count and remove the pods whose creation is over for good."""
        self._store.sweep(self.load.settled())

    def close(self) -> None:
        """Count the rest. Raises AssertionError if the audit log lacks what was answered."""
        eventually(
            "the audit log has every creation that was answered",
            lambda: not self._missing(),
            explain=self._missing,
            # Each look reads the whole log.
            period=0.2,
        )
        self._store.sweep(self.load.settled())

    def _missing(self) -> list[str]:
        """Read the audit log; the creations that were answered and are not in it."""
        self._audited = audit.creations(self._plane, self._namespace)
        return [
            each.name for each in self.creations if each.status and each.name not in self._audited
        ]

    def tally(self) -> Tally:
        """The counts that every scenario has."""
        result = Tally()
        failed = [each for each in self.creations if self.failed(each)]
        created = len(self.creations) - len(failed)
        result.count(CREATIONS, len(self.creations))
        result.count(FAILED, len(failed))
        result.count(REFUSED_OTHERS, sum(not each.matched for each in failed))
        result.count(UNPLACED, len(self.stored.unplaced))
        result.count(DISAGREEMENTS, abs(created - self.stored.matched - self.stored.other))
        result.measure(BEHIND, max((each.late for each in self.creations), default=0.0))
        for each in failed:
            result.example(each.message)
        return result


@contextmanager
def loaded(
    plane: ControlPlane, namespace: str, rate: float, *, first: int = 0, sweeping: bool = True
) -> Iterator[Ledger]:
    """Creations at the rate as long as the block lasts; the ledger is complete after it.

    `first` is the first pod's number. Without `sweeping` the pods stay until the end.
    """
    port = plane.layout.ports["kube-apiserver"]
    pool = Pool("127.0.0.1", port, administrator(plane), "127.0.0.1")
    load = Load(pool, namespace, rate, first)
    ledger = Ledger(plane, namespace, load)
    sweeper = meanwhile(ledger.sweep, _SWEEP_SECONDS) if sweeping else nullcontext()
    with load, sweeper:
        yield ledger
    ledger.close()
