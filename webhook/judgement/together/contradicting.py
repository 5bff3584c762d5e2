"""Pairs of policies that may match one pod and contradict each other.

- Requirements that contradict each other reject each such pod.
- An override that leaves no node together with the other policy's is dropped.
- Of two overrides of equal priority that set one key, the name decides, which is seldom intended. A
  higher priority makes it explicit.

Above 300 lines: the conflicts of a pair, from the search to the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.judgement.together.policy_view import limits
from webhook.placement.fold import fold
from webhook.placement.label_values import int64
from webhook.placement.settings import CapacitySetting, MemberSetting, TolerationSetting
from webhook.policy.findings import Kind
from webhook.policy.load import later_marks_written
from webhook.policy.refused_pods import refused_settings
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from webhook.judgement.together.policy_view import LocatedSetting, Policy
    from webhook.placement.bundle import Bundle
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.trace import Entry
    from webhook.policy.findings import Finding, Path, Severity

_Trouble: TypeAlias = Literal[Kind.SOME_PODS_REJECTED, Kind.DROPPED_BESIDE, Kind.EQUAL_PRIORITY]
_TEXTS: Final[dict[_Trouble, str]] = {
    Kind.SOME_PODS_REJECTED: "contradicts what {} requires: a pod that both match is rejected",
    Kind.DROPPED_BESIDE: "is dropped from pods that {} matches too: no node meets both",
    Kind.EQUAL_PRIORITY: "{} overrides it too, with equal priority: the order of names decides",
}
_Gist: TypeAlias = tuple[str, str, str, str]
_NAMED: Final = 3
# How many times more pairs are tested for a common pod than are folded.
_LOOKS: Final = 4


class _Met(NamedTuple):
    """A conflict of a setting with the other of two policies: which of the two has it, and
    where."""

    second: bool
    at: int
    trouble: _Trouble


class _Fight(NamedTuple):
    policy: Policy
    located: LocatedSetting
    trouble: _Trouble
    other: Policy

    @property
    def is_to_come(self) -> bool:
        """Whether one of the two does not affect pods yet."""
        return bool(_audited((self.policy, self.other)))


class Pairs:
    """All policies, which are given in their order.

    Conflicts of two policies with equal settings are computed once. At most `most` such pairs are
    folded, and some times as many compared: of a thousand different policies, not every pair can be
    checked while a client waits.
    """

    def __init__(self, policies: Sequence[Policy], most: int) -> None:
        self._policies = policies
        self._at = {id(policy): at for at, policy in enumerate(policies)}
        self._by_mind: dict[bytes, list[int]] = {}
        self._by_token: dict[str, set[bytes]] = {}
        self._known: dict[tuple[bytes, bytes], tuple[_Met, ...]] = {}
        self._alone: dict[str, frozenset[_Gist]] = {}
        self._folds, self._looks = most, most * _LOOKS
        for at, policy in enumerate(policies):
            self._by_mind.setdefault(policy.mind, []).append(at)
        for mind, (first, *_) in self._by_mind.items():
            for token in _tokens(policies[first]):
                self._by_token.setdefault(token, set()).add(mind)

    def findings(
        self,
        chosen: Iterable[Policy],
        *,
        level: bool = True,
        reported: Collection[frozenset[Policy]] = (),
    ) -> Iterator[Finding]:
        """Yield findings about these policies with any other.

        Without `level`, overrides of equal priority are not reported. The pairs in `reported` are
        already known to reject pods.
        """
        fights: dict[tuple[int, int, _Trouble, bool], list[_Fight]] = {}
        done: set[int] = set()
        for policy in chosen:
            if self._folds <= 0 or self._looks <= 0:
                break
            done.add(self._at[id(policy)])
            for fight in self._fights(policy, done, level=level):
                pair = frozenset((fight.policy, fight.other))
                if fight.trouble is Kind.SOME_PODS_REJECTED and pair in reported:
                    continue
                key = (
                    self._at[id(fight.policy)],
                    id(fight.located),
                    fight.trouble,
                    fight.is_to_come,
                )
                fights.setdefault(key, []).append(fight)
        for found in fights.values():
            yield _finding(sorted(found, key=lambda each: self._at[id(each.other)]))

    def _fights(self, policy: Policy, done: Collection[int], *, level: bool) -> Iterator[_Fight]:
        mine = self._at[id(policy)]
        minds = {mind for token in _tokens(policy) for mind in self._by_token[token]}
        for mind in sorted(minds - {policy.mind}):
            for at in self._by_mind[mind]:
                other = self._policies[at]
                if at in done or self._looks <= 0:
                    continue
                self._looks -= policy.work_to_match + other.work_to_match - 1
                # Most policies of a large set match different pods.
                if not policy.apart(other):
                    one, two = (policy, other) if mine < at else (other, policy)
                    yield from _between(one, two, self._met(one, two), level=level)

    def _met(self, one: Policy, two: Policy) -> tuple[_Met, ...]:
        key = (one.mind, two.mind)
        found = self._known.get(key)
        if found is None:
            if self._folds <= 0:
                return ()
            self._folds -= one.work + two.work - 1
            found = self._known[key] = tuple(_meet(one, two, self._own(one) | self._own(two)))
        return found

    def _own(self, policy: Policy) -> frozenset[_Gist]:
        """Return the conflicts of a policy with itself."""
        found = self._alone.get(policy.name)
        if found is None:
            settings = [located.setting for located in policy.hard]
            trace = fold((policy.name,), settings).trace
            found = self._alone[policy.name] = frozenset(map(_gist, trace))
        return found


def _between(one: Policy, two: Policy, met: Sequence[_Met], *, level: bool) -> Iterator[_Fight]:
    """Yield the conflicts of two policies that may match one pod."""
    level = level and one.model.spec.priority == two.model.spec.priority
    for each in met:
        if level or each.trouble is not Kind.EQUAL_PRIORITY:
            policy, other = (two, one) if each.second else (one, two)
            yield _Fight(policy, policy.hard[each.at], each.trouble, other)


def alone(policy: Policy) -> Iterator[Finding]:
    """Yield settings of a policy that the API server rejects, or that contradict its other
    settings.
    """
    yield from refused_settings(policy.document)
    yield from later_marks_written(policy.document)
    required = policy.of_parts("requirements")
    if policy.contradictory:
        why = _fold(policy, required).contradictions[0]
        what = f"every pod that it matches is rejected: {why}"
        severity: Severity = "error" if policy.enforced else "warning"
        yield policy.document.finding(
            _first_rejected(policy, required),
            what + once_enforced([policy]),
            severity,
            about=policy.name,
            kind=Kind.EVERY_POD_REJECTED,
        )
        return
    # Of a class another policy's requirement may come first.
    sure = [located for located in required if not isinstance(located.setting, CapacitySetting)]
    for part in ("overrides", "defaults"):
        before: list[LocatedSetting] = []
        for located in policy.of_parts(part):
            if not located.limits:
                continue
            if _is_dropped(policy, [], located):
                value = f"{located.setting.describe_value}{_hint(located.setting)}"
                what = f"no pod gets it: no node can meet {value}"
                yield _impossible(policy, located, what)
            elif _is_dropped(policy, sure, located):
                what = "no pod gets it: no node meets both it and the policy's own requirements"
                yield policy.document.finding(
                    located.path, what, "warning", kind=Kind.NEVER_APPLIED
                )
            elif _is_dropped(policy, before, located):
                # Pods for which another policy decides those settings do get this one.
                what = f"no node meets both it and the other {part} of the policy"
                yield _impossible(policy, located, what, Kind.CONTRADICTS_ITSELF)
            else:
                before.append(located)


def _impossible(
    policy: Policy, located: LocatedSetting, what: str, kind: Kind = Kind.IMPOSSIBLE_SETTING
) -> Finding:
    about = f"{policy.name} {located.setting.part} {located.setting.field}"
    return policy.document.finding(located.path, what, about=about, kind=kind)


def _hint(setting: PlacementSetting) -> str:
    """Return why no label meets a bound that looks possible."""
    requirements = (r for term in limits(setting) for r in term.get("matchExpressions") or ())
    below = (r for r in requirements if r.get("operator") == "Lt")
    if any((int64(value) or 0) <= 0 for r in below for value in r.get("values") or ()):
        return ", for no label is a negative number"
    return ""


def _fold(policy: Policy, some: Iterable[LocatedSetting]) -> Bundle:
    return fold((policy.name,), [located.setting for located in some])


def _first_rejected(policy: Policy, required: Sequence[LocatedSetting]) -> Path:
    rejected = {e.field for e in _fold(policy, required).trace if e.outcome == "rejected"}
    return next(located.path for located in required if located.setting.field in rejected)


def _is_dropped(policy: Policy, before: Sequence[LocatedSetting], located: LocatedSetting) -> bool:
    trace = _fold(policy, [*before, located]).trace
    return any((line.outcome, line.field) == ("dropped", located.setting.field) for line in trace)


def _gist(line: Entry) -> _Gist:
    """Return a line without its reason, which may name other policies."""
    return line.policy, line.part, line.field, line.outcome


def _meet(one: Policy, two: Policy, own: frozenset[_Gist]) -> Iterator[_Met]:
    """Yield the conflicts of either of two policies with the other, the earlier one first."""
    both = fold((one.name, two.name), [located.setting for located in (*one.hard, *two.hard)])
    lines = {line for line in both.trace if _gist(line) not in own}
    for policy, other in ((one, two), (two, one)):
        for at, located in enumerate(policy.hard):
            setting = located.setting
            for line in lines:
                if (line.policy, line.part, line.field) == (
                    policy.name,
                    setting.part,
                    setting.field,
                ):
                    trouble = _trouble(line, setting, other)
                    if trouble is not None:
                        yield _Met(policy is two, at, trouble)


def _trouble(line: Entry, setting: PlacementSetting, other: Policy) -> _Trouble | None:
    match line.outcome:
        case "rejected":
            return Kind.SOME_PODS_REJECTED
        case "dropped":
            return Kind.DROPPED_BESIDE
        case "lost" if _overrides(other, setting):
            return Kind.EQUAL_PRIORITY
    return None


def _overrides(policy: Policy, setting: PlacementSetting) -> bool:
    return setting.part == "overrides" and any(
        located.setting.field == setting.field for located in policy.of_parts("overrides")
    )


def _tokens(policy: Policy) -> set[str]:
    """Return what two policies must have in common to conflict."""
    found: set[str] = set()
    for located in policy.hard:
        setting = located.setting
        found.update(f"node {key}" for key in located.rivals)
        if isinstance(setting, TolerationSetting):
            found.add(f"toleration {setting.toleration.get('key') or ''}")
        elif not (isinstance(setting, MemberSetting) and setting.map == "nodeSelector"):
            found.add(setting.field)
    return found


def _finding(fights: Sequence[_Fight]) -> Finding:
    policy, located, trouble, _ = fights[0]
    names = list(dict.fromkeys(repr(fight.other.name) for fight in fights))
    kind = "policy" if len(names) == 1 else "policies"
    text = _TEXTS[trouble].format(f"{kind} {first_few(names, _NAMED)}")
    if len(names) > 1:
        text = text.replace(" requires:", " require:").replace(" matches too:", " match too:")
        text = text.replace(" overrides it", " override it")
    text += once_enforced([policy, *(fight.other for fight in fights)])
    return policy.document.finding(located.path, text, "warning", about=trouble, kind=trouble)


def once_enforced(policies: Iterable[Policy]) -> str:
    """Return when a finding about the policies comes true, if not now."""
    names = [repr(each.name) for each in _audited(policies)]
    if not names:
        return ""
    return f", once {first_few(names, _NAMED)} {'is' if len(names) == 1 else 'are'} enforced"


def _audited(policies: Iterable[Policy]) -> list[Policy]:
    return [each for each in dict.fromkeys(policies) if each.model.spec.enforcement == "Audit"]
