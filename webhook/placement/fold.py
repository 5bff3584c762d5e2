"""Fold the settings of several policies into one bundle.

Requirements come first, then overrides, then defaults; within each, policies are ordered by
priority, then name. If two set one key, the first wins. A setting that leaves no node together with
earlier ones is dropped. Requirements are never dropped: if two contradict each other, the bundle
rejects every pod.

If a pod's own selector comes before overrides (`placement.kueue`), it is added between requirements
and overrides, so that overrides which leave no node with it are dropped. Then it is removed again,
because the pod has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement import node_affinity
from webhook.placement.bundle import Bundle, Demand, condition_of, keys_of, limits_nodes
from webhook.placement.settings import (
    PARTS,
    AllowedSetting,
    CapacitySetting,
    ListSetting,
    MemberSetting,
    PlacementSetting,
    RequiredSetting,
    ScalarSetting,
    SpreadSetting,
    TolerationSetting,
)
from webhook.placement.tolerations import NO_EXECUTE, covers, normal
from webhook.placement.trace import Ledger, Outcome, quoted, quoted_both, warning

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALONE: Final = "no node can meet it"
_TOGETHER: Final = "no node can meet both"
_ALL: Final = "no node can meet all of them"


def fold(
    policies: Sequence[str],
    settings: Sequence[PlacementSetting],
    ahead: Sequence[MemberSetting] = (),
) -> Bundle:
    """Return the bundle of policies, named in their order; `settings` are theirs, policy by policy.

    `ahead` are nodeSelector keys that come before every override, and are not part of the bundle.
    """
    folding = _Folding()
    # The pod's author chooses how many keys there are; only these can meet a setting.
    restricted = _selector_keys(settings) if ahead else ()
    for part in PARTS:
        if part == "overrides":
            folding.add_with_node([each for each in ahead if each.key in restricted])
        for setting in settings:
            if setting.part == part:
                folding.take(setting)
        if part == "overrides":
            folding.withdraw()
    return folding.bundle(tuple(policies), tuple(settings))


class _Folding:
    """The settings accepted so far. Local to one call of `fold`."""

    def __init__(self) -> None:
        self.standing: list[PlacementSetting] = []
        self.ahead: list[MemberSetting] = []
        self.ledger = Ledger([], [], [])

    def add_with_node(self, ahead: Sequence[MemberSetting]) -> None:
        """Accept for now those with which requirements leave a node; do not record the others."""
        for setting in ahead:
            rival = any(_rivals(each, setting) for each in self.standing)
            if not rival and not _obstacle([*self.standing, setting]):
                self.standing.append(setting)
                self.ahead.append(setting)

    def withdraw(self) -> None:
        self.standing = [w for w in self.standing if not self._is_ahead(w)]
        self.ahead = []

    def _is_ahead(self, setting: PlacementSetting) -> bool:
        return any(setting is other for other in self.ahead)

    def take(self, setting: PlacementSetting) -> None:
        rival = next((each for each in self.standing if _rivals(each, setting)), None)
        if rival is not None and not (self._is_ahead(rival) and agree(setting, rival)):
            self._lose(setting, rival)
        elif self._can_be_met(setting):
            self.standing.append(setting)

    def _lose(self, setting: PlacementSetting, rival: PlacementSetting) -> None:
        if setting.part == rival.part == "requirements" and _contradicts(setting, rival):
            self._contradict(setting, [rival])
            return
        if (
            isinstance(rival, MemberSetting)
            and isinstance(setting, MemberSetting)
            and self._is_ahead(rival)
        ):
            wants, has = quoted_both(setting.value, rival.value)
            self.ledger.note(setting, "kept", f"{rival.policy} set {has}")
            self._warn(setting, f": wants {wants}; kept {has}, which {rival.policy} set")
            return
        outcome: Outcome = "kept" if agree(setting, rival) else "lost"
        says = "sets the same value" if outcome == "kept" else "sets it"
        if rival.if_null and not setting.if_null:
            says += " where the pod has nothing in the field (IsNull)"
        self.ledger.note(setting, outcome, f"policy {rival.policy} ({rival.part}) {says}")

    def _contradict(
        self, setting: PlacementSetting, others: Sequence[PlacementSetting], reason: str = ""
    ) -> None:
        *theirs, own = _describe_values([*others, setting])
        pairs = zip(others, theirs, strict=True)
        beside = " and ".join(_required(each, wanted) for each, wanted in pairs)
        what = f"wants {own}; {beside}" if beside else f"wants {own}"
        self.ledger.note(setting, "rejected", f"{what}: {reason}" if reason else what)
        self.ledger.rejections.append(contradiction([*others, setting], reason))

    def _can_be_met(self, setting: PlacementSetting) -> bool:
        """Return whether a node can meet the setting and the accepted ones; if not, record it."""
        if not limits_nodes(setting):
            return True
        if not _obstacle([*self.standing, setting]):
            return True
        others = self._obstructing(setting)
        reason = _obstacle([*others, setting])
        if setting.part == "requirements":
            self._contradict(setting, others, reason)
            return False
        if others:
            against = self._against(others)
            why = f"conflicts with {against}: {reason}"
            text = f" dropped: it conflicts with {against}"
        else:
            why = f"{reason}: {setting.describe_value}"
            text = f" dropped, {why}"
        self.ledger.note(setting, "dropped", why)
        self._warn(setting, text)
        return False

    def _obstructing(self, setting: PlacementSetting) -> list[PlacementSetting]:
        """Return a minimal group of accepted settings with which no node meets this one.

        Empty if no node meets it by itself.
        """
        if _obstacle([setting]):
            return []
        found = [other for other in self.standing if limits_nodes(other)]
        one = next((other for other in found if _obstacle([other, setting])), None)
        if one is not None:
            return [one]
        for each in list(found):
            others = [other for other in found if other is not each]
            if _obstacle([*others, setting]):
                found = others
        return found

    def _against(self, others: Sequence[PlacementSetting]) -> str:
        """With which policies a setting cannot be met, by name."""
        if len(others) > 1:
            ahead = [each.policy for each in others if self._is_ahead(each)][:1]
            policies = [each.policy for each in others if not self._is_ahead(each)]
            named = [f"policy {name}" for name in dict.fromkeys(policies)]
            return " and ".join([*named, *ahead])
        (one,) = others
        if isinstance(one, MemberSetting) and self._is_ahead(one):
            return f"{one.policy}, which set {one.field}={quoted(one.value)}"
        return f"policy {one.policy} ({one.field})"

    def _warn(self, setting: PlacementSetting, what: str) -> None:
        self.ledger.warnings.append(warning(f"policy {setting.policy}: {setting.field}{what}"))

    def bundle(self, policies: tuple[str, ...], settings: tuple[PlacementSetting, ...]) -> Bundle:
        members: dict[str, tuple[MemberSetting, ...]] = {}
        for setting in self.standing:
            if isinstance(setting, MemberSetting):
                members[setting.map] = (*members.get(setting.map, ()), setting)
        tolerations = tuple(w for w in self.standing if isinstance(w, TolerationSetting))
        return Bundle(
            policies=policies,
            settings=settings,
            members=members,
            scalars=tuple(w for w in self.standing if isinstance(w, ScalarSetting)),
            tolerations=tolerations,
            specific=tuple(
                w.toleration
                for w in tolerations
                if not w.is_default and normal(w.toleration).effect == NO_EXECUTE
            ),
            allowed=tuple(w for w in self.standing if isinstance(w, AllowedSetting)),
            required=tuple(w for w in self.standing if isinstance(w, RequiredSetting)),
            lists=tuple(w for w in self.standing if isinstance(w, ListSetting)),
            spread=tuple(w for w in self.standing if isinstance(w, SpreadSetting)),
            capacity=tuple(w for w in self.standing if isinstance(w, CapacitySetting)),
            hard=_demand([w for w in self.standing if not w.is_default]),
            demanded=_demand([w for w in self.standing if w.part == "requirements"]),
            term_keys=_term_keys(self.standing),
            contradictions=tuple(self.ledger.rejections),
            trace=tuple(self.ledger.trace),
            warnings=tuple(self.ledger.warnings),
        )


def _rivals(one: PlacementSetting, other: PlacementSetting) -> bool:
    """Return whether an accepted setting leaves no room for another one."""
    match one, other:
        case AllowedSetting(), AllowedSetting():
            return False  # all of them hold
        case TolerationSetting(), TolerationSetting():
            return covers(one.toleration, other.toleration)
        case CapacitySetting(), CapacitySetting():
            if one.capacity.name != other.capacity.name:
                return False
            if one.part == other.part != "requirements" or other.is_default:
                return True
            # None conflicts with every other mode, although no node contradicts it.
            gives_way = one.mode.does_nothing or other.mode.does_nothing
            return agree(one, other) or gives_way or not one.mode.compatible(other.mode)
        case RequiredSetting(), RequiredSetting():
            return one.is_default and other.is_default  # others are ANDed, in any number
        case ListSetting(), ListSetting():
            same = one.is_default and other.is_default  # others are appended, in any number
            return same and one.name == other.name
        case ScalarSetting(), ScalarSetting():
            return one.name == other.name and not one.leaves_room(other)
        case SpreadSetting(), SpreadSetting():
            return one.pair == other.pair
    return type(one) is type(other) and one.field == other.field


def _required(setting: PlacementSetting, wanted: str) -> str:
    return f"policy {setting.policy} requires {setting.field} {wanted}"


def _describe_values(settings: Sequence[PlacementSetting]) -> list[str]:
    """Return what each wants; two long values are cut so that they differ."""
    texts = [each.describe_value for each in settings]
    match settings:
        case [ScalarSetting() | MemberSetting() as one, ScalarSetting() | MemberSetting() as other]:
            return list(quoted_both(one.value, other.value)) if texts[0] == texts[1] else texts
    return texts


def contradiction(settings: Sequence[PlacementSetting], reason: str = "") -> str:
    """Return what requirements that contradict each other want, each with its policy, and the
    cure."""
    if len({setting.field for setting in settings}) == 1 < len(settings) and not reason:
        pairs = zip(settings, _describe_values(settings), strict=True)
        wanted = ", ".join(f"policy {each.policy} requires {text}" for each, text in pairs)
        what = f"{settings[0].field}: {wanted}"
    else:
        required = ", ".join(map(_required, settings, _describe_values(settings)))
        what = f"{required}: {reason or _TOGETHER}"
    if len({setting.policy for setting in settings}) == 1:
        return f"{what}; change the policy"
    return f"{what}; change one of them or narrow its match"


def agree(one: PlacementSetting, other: PlacementSetting) -> bool:
    """Return whether two settings of one field want the same."""
    match one, other:
        case MemberSetting(), MemberSetting():
            return bool(one.value == other.value)
        case ScalarSetting(), ScalarSetting():
            return one.value == other.value
        case TolerationSetting(), TolerationSetting():
            # They differ only where both are about the same taints and give other seconds.
            a, b = normal(one.toleration), normal(other.toleration)
            return a.reach != b.reach or a.seconds == b.seconds
        case CapacitySetting(), CapacitySetting():
            return (one.mode, one.weight) == (other.mode, other.weight)
        case SpreadSetting(), SpreadSetting():
            return one.constraint == other.constraint
    return False


def _contradicts(one: PlacementSetting, other: PlacementSetting) -> bool:
    if isinstance(one, CapacitySetting) and isinstance(other, CapacitySetting):
        return not one.mode.compatible(other.mode)
    return not agree(one, other)


def _demand(settings: Sequence[PlacementSetting]) -> Demand:
    selector = {
        w.key: w.value for w in settings if isinstance(w, MemberSetting) and w.map == "nodeSelector"
    }
    terms = node_affinity.conjunction(
        condition for w in settings if (condition := condition_of(w)) is not None
    )
    return Demand(selector, None if terms is None else node_affinity.pruned(terms, selector))


def _obstacle(settings: Sequence[PlacementSetting]) -> str:
    """Return why no node can meet the settings together, or why that is unknown; or nothing."""
    try:
        if _demand(settings).possible:
            return ""
        return _ALONE if len(settings) == 1 else _TOGETHER if len(settings) == 2 else _ALL
    except node_affinity.TooManyTerms as error:
        return str(error)


def _selector_keys(settings: Sequence[PlacementSetting]) -> frozenset[str]:
    members = [w for w in settings if isinstance(w, MemberSetting) and w.map == "nodeSelector"]
    return _term_keys(settings).union(w.key for w in members)


def _term_keys(settings: Sequence[PlacementSetting]) -> frozenset[str]:
    return frozenset[str]().union(
        *(
            keys_of(setting)
            for setting in settings
            if isinstance(setting, RequiredSetting | CapacitySetting)
        )
    )
