"""Fold the settings of several policies into one bundle.

Requirements come first, then overrides, then defaults; within each, policies are ordered by
priority, then name. Defaults of teams' policies come before other defaults. If two set one key, the
first wins. A setting that leaves no node together with earlier ones is dropped. Requirements are
never dropped: if two contradict each other, the bundle rejects every pod.

If a pod's own selector comes before overrides (`placement.kueue`), it is added between requirements
and overrides, so that overrides which leave no node with it are dropped. Then it is removed again,
because the pod has it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from webhook.placement import node_affinity
from webhook.placement.bundle import Bundle, Demand
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.label_values import listed_values
from webhook.placement.namespace_setting import NamespaceSetting
from webhook.placement.placement_setting import PARTS
from webhook.placement.settings import (
    AllowedSetting,
    MemberSetting,
    RequiredSetting,
    TolerationSetting,
    ValuesSetting,
    is_selector,
)
from webhook.placement.tolerations import NO_EXECUTE, normal, pattern_of
from webhook.placement.trace import Ledger, Outcome, warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.placement_setting import PlacementSetting

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
    restricted = {key for setting in settings for key in setting.node_keys} if ahead else ()
    ordered = sorted(settings, key=_of_others)
    for part in PARTS:
        if part == "overrides":
            folding.add_with_node([setting for setting in ahead if setting.key in restricted])
        for setting in [setting for setting in ordered if setting.part == part]:
            folding.take(setting)
        if part == "overrides":
            folding.withdraw()
    return folding.bundle(tuple(policies), tuple(settings))


def _of_others(setting: PlacementSetting) -> bool:
    return not setting.of_team


class _Folding:
    """The settings accepted so far. Local to one call of `fold`."""

    def __init__(self) -> None:
        self.standing: list[PlacementSetting] = []
        self.ahead: list[MemberSetting] = []
        self.ledger = Ledger([], [], [])

    def add_with_node(self, ahead: Sequence[MemberSetting]) -> None:
        """Accept for now those with which requirements leave a node; do not record the others."""
        for setting in ahead:
            if self._rival(setting) is None and not _obstacle([*self.standing, setting]):
                self.standing.append(setting)
                self.ahead.append(setting)

    def withdraw(self) -> None:
        self.standing = [w for w in self.standing if not self._is_ahead(w)]
        self.ahead = []

    def _is_ahead(self, setting: PlacementSetting) -> bool:
        return any(setting is other for other in self.ahead)

    def take(self, setting: PlacementSetting) -> None:
        if isinstance(setting, NamespaceSetting):
            self._take_missing(setting)
            return
        rival = self._rival(setting)
        if rival is not None and not (self._is_ahead(rival) and setting.agrees(rival)):
            self._lose(setting, rival)
        elif setting.of_team and (rule := self._forbidding(setting)):
            why = f"policy {rule.policy} ({rule.written}) does not allow it"
            self.ledger.note(setting, "dropped", why)
            self._warn(setting, f" dropped: {why}")
        elif self._can_be_met(setting):
            self.standing.append(setting)

    def _forbidding(self, setting: PlacementSetting) -> PlacementSetting | None:
        """Return a requirement by which the pod's author could not have written the setting.

        What a team's policy adds would be judged as the author's if the pod were sent again.
        """
        given = [
            pattern_of(toleration)
            for other in self.standing
            if not other.is_default
            for toleration in other.tolerated
        ]
        for rule in self.standing:
            if isinstance(rule, AllowedSetting):
                patterns = (*rule.patterns, *given)
                if not all(any(p.allows(t) for p in patterns) for t in setting.tolerated):
                    return rule
            elif isinstance(rule, ValuesSetting) and rule.name == "nodeSelector":
                values = chain.from_iterable(
                    listed_values(term, rule.key) for term in setting.node_terms or ()
                )
                if not {*values} <= {*rule.values}:
                    return rule
        return None

    def _take_missing(self, setting: NamespaceSetting) -> None:
        """Take a setting without a value. One that loses whatever its value is has no effect."""
        rival = self._rival(setting.example)
        if rival is not None and setting.part != "requirements":
            self._lose(setting.example, rival)
        elif setting.is_default:
            self.ledger.note(setting, "skipped", setting.missing)
        else:
            self.standing.append(setting)

    def _rival(self, setting: PlacementSetting) -> PlacementSetting | None:
        """Return the accepted setting that leaves no room for this one."""
        kind = type(setting)
        rivals = (
            rival for rival in self.standing if type(rival) is kind and rival.precludes(setting)
        )
        return next(rivals, None)

    def _lose(self, setting: PlacementSetting, rival: PlacementSetting) -> None:
        if setting.part == rival.part == "requirements" and setting.contradicts(rival):
            self._contradict(setting, [rival])
            return
        if self._is_ahead(rival):
            wants, has = setting.describe_both(rival)
            self.ledger.note(setting, "kept", f"{rival.policy} set {has}")
            self._warn(setting, f": wants {wants}; kept {has}, which {rival.policy} set")
            return
        same = setting.agrees(rival) and not setting.accumulates
        outcome: Outcome = "kept" if same else "lost"
        says = "sets the same value" if outcome == "kept" else "sets it"
        if rival.if_null and not setting.if_null:
            says += " where the pod has nothing in the field (IsNull)"
        self.ledger.note(setting, outcome, f"policy {rival.policy} ({rival.part}) {says}")
        if setting.of_team and outcome == "lost" and not rival.of_team:
            self._warn(setting, f" dropped: policy {rival.policy} ({rival.part}) {says}")

    def _contradict(
        self, setting: PlacementSetting, others: Sequence[PlacementSetting], reason: str = ""
    ) -> None:
        *theirs, setting_text = _describe_values([*others, setting])
        pairs = zip(others, theirs, strict=True)
        beside = " and ".join(_required(other, wanted) for other, wanted in pairs)
        what = f"wants {setting_text}; {beside}" if beside else f"wants {setting_text}"
        self.ledger.note(setting, "rejected", f"{what}: {reason}" if reason else what)
        self.ledger.rejections.append(contradiction([*others, setting], reason))

    def _can_be_met(self, setting: PlacementSetting) -> bool:
        """Return whether a node can meet the setting and the accepted ones; if not, record it."""
        if not setting.limits_nodes:
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
        settings = [other for other in self.standing if other.limits_nodes]
        rival = next((other for other in settings if _obstacle([other, setting])), None)
        if rival is not None:
            return [rival]
        for candidate in list(settings):
            others = [other for other in settings if other is not candidate]
            if _obstacle([*others, setting]):
                settings = others
        return settings

    def _against(self, others: Sequence[PlacementSetting]) -> str:
        """With which policies a setting cannot be met, by name."""
        if len(others) > 1:
            ahead = [other.policy for other in others if self._is_ahead(other)][:1]
            policies = [other.policy for other in others if not self._is_ahead(other)]
            named = [f"policy {name}" for name in dict.fromkeys(policies)]
            return " and ".join([*named, *ahead])
        (other,) = others
        if self._is_ahead(other):
            return f"{other.policy}, which set {other.field}={other.describe_value}"
        return f"policy {other.policy} ({other.field})"

    def _warn(self, setting: PlacementSetting, what: str) -> None:
        self.ledger.warnings.append(warning(f"policy {setting.policy}: {setting.field}{what}"))

    def bundle(self, policies: tuple[str, ...], settings: tuple[PlacementSetting, ...]) -> Bundle:
        by_class: dict[type, tuple[PlacementSetting, ...]] = {}
        members: dict[str, tuple[MemberSetting, ...]] = {}
        for setting in self.standing:
            by_class[type(setting)] = (*by_class.get(type(setting), ()), setting)
            if isinstance(setting, MemberSetting):
                members[setting.map] = (*members.get(setting.map, ()), setting)
        return Bundle(
            policies=policies,
            settings=settings,
            by_class=by_class,
            members=members,
            on_nodes=(
                *members.get("nodeSelector", ()),
                *(w for w in self.standing if isinstance(w, RequiredSetting)),
                *(w for w in self.standing if isinstance(w, CapacitySetting)),
            ),
            specific=tuple(
                w.toleration
                for w in self.standing
                if isinstance(w, TolerationSetting)
                and not w.is_default
                and normal(w.toleration).effect == NO_EXECUTE
            ),
            hard=_demand([w for w in self.standing if not w.is_default]),
            demanded=_demand([w for w in self.standing if w.part == "requirements"]),
            term_keys=_term_keys(self.standing),
            contradictions=tuple(self.ledger.rejections),
            trace=tuple(self.ledger.trace),
            warnings=tuple(self.ledger.warnings),
        )


def _required(setting: PlacementSetting, wanted: str) -> str:
    return f"policy {setting.policy} requires {setting.field} {wanted}"


def _describe_values(settings: Sequence[PlacementSetting]) -> list[str]:
    """Return what each wants; two long values are cut so that they differ."""
    if len(settings) == 2 and type(settings[0]) is type(settings[1]):
        return list(settings[0].describe_both(settings[1]))
    return [setting.describe_value for setting in settings]


def contradiction(settings: Sequence[PlacementSetting], reason: str = "") -> str:
    """Return what requirements that contradict each other want, each with its policy, and the
    cure."""
    if len({setting.field for setting in settings}) == 1 < len(settings) and not reason:
        pairs = zip(settings, _describe_values(settings), strict=True)
        wanted = ", ".join(f"policy {setting.policy} requires {text}" for setting, text in pairs)
        what = f"{settings[0].field}: {wanted}"
    else:
        required = ", ".join(map(_required, settings, _describe_values(settings)))
        what = f"{required}: {reason or _TOGETHER}"
    if len({setting.policy for setting in settings}) == 1:
        return f"{what}; change the policy"
    return f"{what}; change one of them or narrow its match"


def _demand(settings: Sequence[PlacementSetting]) -> Demand:
    selector = {w.key: w.value for w in settings if is_selector(w)}
    terms = node_affinity.conjunction(
        condition for w in settings if (condition := w.condition) is not None
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


def _term_keys(settings: Sequence[PlacementSetting]) -> frozenset[str]:
    return frozenset[str]().union(*(node_affinity.keys(w.condition or ()) for w in settings))
