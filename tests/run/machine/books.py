"""What the statuses written so far have said of one run, and which truths they have used up."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.run.machine.ledger import Fate, Ledger
from tests.run.machine.things import Json, RunThing, seconds
from webhook.run.queue import CANNOT_CREATE, PLACEMENT_CHANGED

OVER = ("Succeeded", "Failed")


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


def recovering(role: Json) -> dict[int, Json]:
    """By index, what a role's status says of replicas that went down."""
    entries = role.get("recovering", ())
    return {index: each for each in entries for index in indexes(each["indexes"])}


def falls(role: Json, index: int) -> tuple[str, int]:
    """When a replica went down last, and how often: a failure may become a disruption."""
    entry = recovering(role).get(index, {"since": "", "failures": 0, "disruptions": 0})
    return entry["since"], entry["failures"] + entry["disruptions"]


@dataclass
class Books:
    """One run's past, as far as it was written.

    alone: whether one controller alone writes.
    counted: uids of pods whose end was ever counted.
    ended: those of pods that went down; the others waited for a node.
    used: uids of pods that vanished, and whose end was counted.
    attempts, epochs: by role, the attempt, and the one from which on successes count.
    waits: (role, index) -> until when it waits, by what was last written.
    """

    run_uid: str
    ledger: Ledger
    alone: bool = True
    counted: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    attempts: dict[str, int] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    waits: dict[tuple[str, int], float] = field(default_factory=dict)
    ever_succeeded: dict[str, set[int]] = field(default_factory=dict)
    over: bool = False

    def succeeded(self, status: Json, role: str) -> set[int]:
        """The indexes that a status says have finished."""
        return indexes(role_of(status, role).get("succeededIndexes", ""))

    def fates(self, role: str, index: int | None = None) -> list[Fate]:
        """What became of the pods of a role, or of one replica."""
        return self.ledger.of(self.run_uid, role, index)

    def every_fate(self) -> list[Fate]:
        """What became of the run's pods."""
        mine = self.ledger.fates.values()
        return [fate for fate in mine if fate.pod.run_uid == self.run_uid]

    def newly_counted(self, old: Json, new: Json) -> list[Fate]:
        """The pods whose uids a role's status names for the first time."""
        uids = set(new.get("countedUIDs", ())) - set(old.get("countedUIDs", ()))
        return [self.ledger.fates[uid] for uid in sorted(uids)]

    def newly_ended(self, old: Json, new: Json) -> list[Fate]:
        """Those of them that went down."""
        return [
            fate
            for fate in self.newly_counted(old, new)
            if falls(new, fate.pod.index) != falls(old, fate.pod.index)
        ]

    def moved(self, old: Json, new: Json) -> list[Fate]:
        """The others: they are to be created again, because they have waited for a node."""
        ended = self.newly_ended(old, new)
        return [fate for fate in self.newly_counted(old, new) if fate not in ended]

    def newly_missed(self, old: Json, new: Json) -> list[int]:
        """Indexes that went down, or were active, and did not end as a pod that is named."""
        left = indexes(old.get("activeIndexes", "")) - indexes(new.get("activeIndexes", ""))
        left |= {at for at in recovering(new) if falls(new, at) != falls(old, at)}
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
        return self.waits.get((role, index), 0.0)

    def anew(self, scope: str, role: str, old: Json, new: Json) -> bool:
        """Whether a write begins a role again, its finished replicas among them."""
        if scope == "Replica" or attempt(new, role) == attempt(old, role):
            return False
        if new.get("phase") != "Suspended" and not gave_way(old, new):
            return True
        if evicted(old, new) or gave_back(old, new) or gave_way(old, new):
            # Of a role alone, unless all of it has finished.
            return scope == "Run" or not role_of(new, role).get("succeededIndexes")
        unit = new["replicas"] if scope == "Run" else [role]
        return any(restarts(role_of(new, each)) > restarts(role_of(old, each)) for each in unit)

    def note(self, old: RunThing, new: RunThing) -> None:
        """Remember what a write said."""
        scope = new.spec.get("restartScope", "Replica")
        for role in new.status.get("replicas", {}):
            anew = self.anew(scope, role, old.status, new.status)
            after = role_of(new.status, role)
            if anew:
                self.epochs[role] = after["attempt"]
            self.waits = {at: until for at, until in self.waits.items() if at[0] != role}
            for index, entry in recovering(after).items():
                wait = entry["waitMilliseconds"] / 1000
                self.waits[role, index] = seconds(entry["since"]) + wait
            self.attempts[role] = after.get("attempt", 0)
            self.counted |= set(after.get("countedUIDs", ()))
            before = role_of(old.status, role)
            self.ended |= {fate.pod.uid for fate in self.newly_ended(before, after)}
            done = indexes(after.get("succeededIndexes", ""))
            self.ever_succeeded[role] = done if anew else done | self.ever_succeeded.get(role, done)
        if new.status.get("phase") == "Suspended":
            # A run at rest has waited.
            self.waits.clear()
        self.over = self.over or new.status.get("phase") in OVER


def evicted(old: Json, new: Json) -> bool:
    """Whether a write suspends a run because its queue evicts it."""
    return _leaves(old, new) == "Evicted"


def gave_back(old: Json, new: Json) -> bool:
    """Whether a write suspends a run because it gives its quota back, which is no disruption."""
    return _leaves(old, new) in (CANNOT_CREATE, PLACEMENT_CHANGED)


def gang_of(status: Json) -> str:
    """The state of a start; empty without one."""
    return str((status.get("gang") or {}).get("state", ""))


def gave_way(old: Json, new: Json) -> bool:
    """Whether a write gives up a start in which not all replicas had a node."""
    return (gang_of(old), gang_of(new)) == ("Starting", "Waiting")


def _leaves(old: Json, new: Json) -> str:
    """Why a write suspends a run that had begun, by the condition of its queue."""
    begun = old.get("phase") not in (None, "", "Suspended", *OVER)
    conditions = {each["type"]: each["reason"] for each in new.get("conditions", ())}
    suspends = begun and new.get("phase") == "Suspended"
    return str(conditions.get("Admitted", "")) if suspends else ""


def attempt(status: Json, role: str) -> int:
    return int(role_of(status, role).get("attempt", 0))


def restarts(role: Json) -> int:
    return int(role.get("restarts", 0))


def uncharged(status: Json) -> int:
    """Failures that wait for their charge."""
    waiting = (each for each in status.get("incidents", ()) if each["cause"] == "Unknown")
    return sum(sum(each["failures"].values()) for each in waiting)


def collateral(old: Json, new: Json) -> int:
    """Failures that a write adds to disruptions."""
    before = {
        each["began"]: each["collateral"]
        for each in old.get("incidents", ())
        if each["cause"] == "Disruption"
    }
    return sum(
        each["collateral"] - before.get(each["began"], 0)
        for each in new.get("incidents", ())
        if each["cause"] == "Disruption"
    )
