"""Tolerations: what one admits, and which of two covers the other.

The rules are those of v1.Toleration.ToleratesTaint in k8s.io/api/core/v1: an absent effect means
every effect, an absent key (with Exists) every key, an absent operator Equal. An operator that is
not known here is never interpreted: such a toleration covers and overlaps only equal ones.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.shapes import Taint, Toleration

NO_EXECUTE = "NoExecute"
# The effects that keep a pod off a node; PreferNoSchedule only makes the node less liked.
EXCLUDING_EFFECTS = frozenset({"NoSchedule", NO_EXECUTE})
# Of taints that come and go with a node's state.
_PASSING: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/unregistered",
)


class Normal(NamedTuple):
    """A toleration in normal form: every default written out, `value` empty under Exists."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None

    @property
    def reach(self) -> tuple[str, str, str, str]:
        """Which taints it is about, without how long it tolerates them."""
        return self[:4]


class Pattern(NamedTuple):
    """Tolerations by the taints that they are about.

    key: exact, with a * at its end the beginning, * alone for every key, also for tolerations
    without one. value: None for every value. effect: empty for every effect.
    """

    key: str
    value: str | None = None
    effect: str = ""

    def __str__(self) -> str:
        value = "" if self.value is None else f"={self.value}"
        return f"{self.key}{value}" + (f":{self.effect}" if self.effect else "")

    def allows(self, toleration: Toleration) -> bool:
        """Return whether the toleration is about no other taints than these."""
        key, operator, value, effect, _ = normal(toleration)
        if self.effect and effect != self.effect:
            return False
        if self.key != "*" and not (key and _begins(key, self.key)):
            return False
        if self.value is None:
            return operator in ("Exists", "Equal")
        return operator == "Equal" and value == self.value


def _begins(key: str, pattern: str) -> bool:
    return key.startswith(pattern[:-1]) if pattern.endswith("*") else key == pattern


def pattern_of(toleration: Toleration) -> Pattern:
    """Return the pattern of what the toleration covers."""
    key, operator, value, effect, _ = normal(toleration)
    return Pattern(key or "*", None if operator == "Exists" else value, effect)


MeetingPoint: TypeAlias = "tuple[str | None, ...]"


def normal(toleration: Toleration) -> Normal:
    """Return the normal form, equal for two tolerations that Kubernetes cannot tell apart."""
    operator = toleration.get("operator") or "Equal"
    return Normal(
        toleration.get("key") or "",
        operator,
        "" if operator == "Exists" else toleration.get("value") or "",
        toleration.get("effect") or "",
        toleration.get("tolerationSeconds"),
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    key, operator, value, effect, _ = normal(toleration)
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    if operator == "Exists":
        return True
    return operator == "Equal" and bool(key) and value == (taint.get("value") or "")


def covers(broad: Toleration, narrow: Toleration) -> bool:
    """Return whether every taint that `narrow` admits is admitted by `broad` too, seconds aside."""
    # Most pairs differ here already, and every decision asks for several.
    key, effect = broad.get("key"), broad.get("effect")
    if (key and key != narrow.get("key")) or (effect and effect != narrow.get("effect")):
        return False
    b, n = normal(broad), normal(narrow)
    if b.reach == n.reach:
        return True
    if b.operator == "Exists":
        return n.operator in ("Exists", "Equal")
    return b.operator == "Equal" == n.operator and bool(b.key) and b.value == n.value


def within(narrow: Toleration, broad: Toleration) -> bool:
    """Return whether `broad` admits every taint that `narrow` does, for the same time."""
    return covers(broad, narrow) and normal(broad).seconds == normal(narrow).seconds


def overlaps(toleration: Toleration, other: Toleration) -> bool:
    a, b = normal(toleration), normal(other)
    if a.reach == b.reach:
        return True
    if a.effect and b.effect and a.effect != b.effect:
        return False
    if a.key and b.key and a.key != b.key:
        return False
    if a.operator == "Equal" == b.operator:
        return a.value == b.value
    return {a.operator, b.operator} <= {"Equal", "Exists"}


def meeting_points(toleration: Toleration) -> tuple[list[MeetingPoint], list[MeetingPoint]]:
    """Return where a toleration can be found, and where it looks for those that it overlaps.

    Two tolerations overlap if and only if one can be found where the other looks. So a list of them
    is compared with another in one pass over each.
    """
    key, operator, value, effect, _ = normal(toleration)
    if operator not in ("Equal", "Exists"):
        only: list[MeetingPoint] = [normal(toleration).reach]
        return only, only
    # None has all of them: it is looked up for a toleration that leaves the field open.
    exists = ""
    values = (f"={value}", None) if operator == "Equal" else (exists,)
    wanted = (f"={value}" if operator == "Equal" else None, exists)
    return (
        [(k, e, v) for k in (key, None) for e in (effect, None) for v in values],
        [
            (k, e, v)
            for k in ((key, "") if key else (None,))
            for e in ((effect, "") if effect else (None,))
            for v in wanted
        ],
    )


def covered(toleration: Toleration, by: Iterable[Toleration]) -> bool:
    return any(map(covers, by, repeat(toleration)))


def joined(first: Sequence[Toleration], then: Iterable[Toleration]) -> list[Toleration]:
    """`first`, and those of `then` that it does not cover, in order, without duplicates."""
    result = list(first)
    for toleration in then:
        if not covered(toleration, result):
            result.append(toleration)
    return result


def passing(taint: Taint) -> bool:
    """Return whether the taint comes and goes with a node's state: a cordon, pressure, an
    autoscaler's."""
    return (taint.get("key") or "").startswith(_PASSING)


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Return the first taint that excludes the pod, or None."""
    for taint in taints:
        if taint.get("effect") in EXCLUDING_EFFECTS and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            return taint
    return None


def with_seconds(
    tolerations: Sequence[Toleration], specific: Sequence[Toleration]
) -> list[Toleration]:
    """`specific` NoExecute tolerations put before any other that matches the same taint.

    Eviction takes the first toleration that matches and its seconds, so a specific one counts only
    in front. Among themselves the earlier of `specific` keeps precedence. What stands well already
    is not moved, so that doing this twice is doing it once.
    """
    result = list(tolerations)
    for index in range(len(specific) - 1, -1, -1):
        setting = specific[index]
        # Worked from the last to the first: an earlier setting may pass a later one, never back.
        senior = specific[:index]
        rivals = [
            at
            for at, other in enumerate(result)
            if other != setting and other not in senior and overlaps(other, setting)
        ]
        place = rivals[0] if rivals else len(result)
        if setting in result:
            if result.index(setting) < place:
                continue
            result.remove(setting)
        result.insert(place, setting)
    return result
