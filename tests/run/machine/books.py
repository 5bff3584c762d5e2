"""What the statuses written so far have said of one run, and which truths they have used up."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.run.machine.ledger import Fate, Ledger
from tests.run.machine.things import Json, RunThing

OVER = ("Succeeded", "Failed")
# A replica that ran for less than this was not stable, whatever counts as stable.
SHORT = 60.0


def indexes(text: str) -> set[int]:
    """The indexes of "0-3,5"."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        ends = [int(end) for end in part.split("-")]
        found |= set(range(ends[0], ends[-1] + 1))
    return found


def role_of(status: Json, role: str) -> Json:
    """One role's part of a status; empty before it was written."""
    found: Json = status.get("replicas", {}).get(role, {})
    return found


@dataclass
class Books:
    """One run's past, as far as it was written.

    alone: whether one controller alone writes.
    counted: uids of pods whose end was ever counted.
    used: uids of pods that vanished, and whose end was counted.
    attempts, epochs: by role, the attempt, and the one from which on successes count.
    rows: (role, index) -> how often in a row it went down, and when that was last written.
    """

    run_uid: str
    ledger: Ledger
    alone: bool = True
    counted: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    attempts: dict[str, int] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    rows: dict[tuple[str, int], tuple[int, float]] = field(default_factory=dict)
    ever_succeeded: dict[str, set[int]] = field(default_factory=dict)
    over: bool = False

    def succeeded(self, status: Json, role: str) -> set[int]:
        """The indexes that a status says have finished."""
        return indexes(role_of(status, role).get("succeededIndexes", ""))

    def fates(self, role: str, index: int | None = None) -> list[Fate]:
        """What became of the pods of a role, or of one replica."""
        return self.ledger.of(self.run_uid, role, index)

    def newly_counted(self, old: Json, new: Json) -> list[Fate]:
        """The pods whose uids a role's status names for the first time."""
        uids = set(new.get("countedUIDs", ())) - set(old.get("countedUIDs", ()))
        return [self.ledger.fates[uid] for uid in sorted(uids)]

    def newly_missed(self, old: Json, new: Json) -> list[int]:
        """Indexes that were active, are not any more, and did not end as a pod that is named."""
        left = indexes(old.get("activeIndexes", "")) - indexes(new.get("activeIndexes", ""))
        left -= indexes(new.get("succeededIndexes", ""))
        left -= {fate.pod.index for fate in self.newly_counted(old, new)}
        return sorted(left)

    def vanished(self, role: str, index: int) -> list[Fate]:
        """Pods that are gone, whose end was not counted, and that the controller did not take."""
        return [
            fate
            for fate in self.fates(role, index)
            if fate.gone_at is not None
            and fate.word != "own"
            and fate.pod.uid not in self.counted | self.used
        ]

    def wait_until(self, role: str, index: int) -> float:
        """Before this moment the replica may not be begun again."""
        times, since = self.rows.get((role, index), (0, 0.0))
        return since + min(360.0, 10.0 * 2 ** (times - 1)) if times else 0.0

    def anew(self, scope: str, role: str, old: Json, new: Json) -> bool:
        """Whether a write begins a role anew, its finished replicas among them."""
        if scope == "Replica" or attempt(new, role) == attempt(old, role):
            return False
        unit = new["replicas"] if scope == "Run" else [role]
        return any(charges(role_of(new, each)) > charges(role_of(old, each)) for each in unit)

    def note(self, old: RunThing, new: RunThing, now: float) -> None:
        """Remember what a write said."""
        scope = new.spec.get("restartScope", "Replica")
        for role in new.status.get("replicas", {}):
            anew = self.anew(scope, role, old.status, new.status)
            before, after = role_of(old.status, role), role_of(new.status, role)
            if anew:
                self._begin_anew(role, after, now)
            elif charges(after) > charges(before):
                went = {fate.pod.index for fate in self.newly_counted(before, after)}
                for index in went | set(self.newly_missed(before, after)):
                    self._went_down(role, index, now)
            self.attempts[role] = after.get("attempt", 0)
            self.counted |= set(after.get("countedUIDs", ()))
            done = indexes(after.get("succeededIndexes", ""))
            self.ever_succeeded[role] = done if anew else done | self.ever_succeeded.get(role, done)
        if new.status.get("phase") == "Suspended":
            # A run at rest has waited.
            self.rows.clear()
        self.over = self.over or new.status.get("phase") in OVER

    def _begin_anew(self, role: str, after: Json, now: float) -> None:
        self.epochs[role] = after["attempt"]
        known = [times for (name, _), (times, _) in self.rows.items() if name == role]
        lasting = any(fate.lasted(now) >= SHORT for fate in self.fates(role))
        row = 1 if lasting else max(known, default=0) + 1
        for index in range(after.get("desired", 0)):
            self.rows[role, index] = (row, now)

    def _went_down(self, role: str, index: int, now: float) -> None:
        times, _ = self.rows.get((role, index), (0, 0.0))
        last = self.fates(role, index)[-1:]
        lasting = any(fate.lasted(now) >= SHORT for fate in last)
        self.rows[role, index] = (1 if lasting else times + 1, now)


def attempt(status: Json, role: str) -> int:
    """The attempt of a role."""
    return int(role_of(status, role).get("attempt", 0))


def charges(role: Json) -> int:
    """Failures and disruptions of a role's status."""
    return int(role.get("failed", 0)) + int(role.get("disruptions", 0))
