"""Pairs of policies that may match one pod, and cannot both have their way with it.

Requirements that cannot hold together reject each such pod. An override that no node can meet
beside the other policy's is dropped. And of two overrides of equal priority that want one key the
name alone decides: seldom what somebody means, while a higher priority says that it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.placement.fold import fold
from webhook.placement.label_values import int64
from webhook.placement.settings import CapacitySetting, MemberSetting, TolerationSetting
from webhook.policy.findings import Kind, first_few
from webhook.policy.together.policy_view import limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.trace import Entry
    from webhook.policy.findings import Finding, Path, Severity
    from webhook.policy.together.policy_view import LocatedSetting, Policy

_Trouble: TypeAlias = Literal[Kind.SOME_PODS_REJECTED, Kind.DROPPED_BESIDE, Kind.EQUAL_PRIORITY]
_TEXTS: Final[dict[_Trouble, str]] = {
    Kind.SOME_PODS_REJECTED: "contradicts what {} requires: a pod that both match is rejected",
    Kind.DROPPED_BESIDE: "is dropped from pods that {} matches too: no node meets both",
    Kind.EQUAL_PRIORITY: "{} overrides it too, with equal priority: only the names decide",
}
_Gist: TypeAlias = tuple[str, str, str, str]
_NAMED: Final = 3
# Whether two policies may match one pod is asked so many times as often as two are folded.
_LOOKS: Final = 4


class _Met(NamedTuple):
    """What a setting meets in the other of two policies: which of the two says it, and where."""

    second: bool
    at: int
    trouble: _Trouble


class _Fight(NamedTuple):
    policy: Policy
    said: LocatedSetting
    trouble: _Trouble
    other: Policy

    @property
    def is_to_come(self) -> bool:
        """Whether one of the two does nothing to pods so far."""
        return bool(_audited((self.policy, self.other)))


class Pairs:
    """All policies, which are given in their order.

    What two policies of the same minds meet in each other is worked out once. At most `most` such
    pairs are folded, and some times as many held against each other: of a thousand, each of a mind
    of its own, not every pair can be looked at while somebody waits.
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

    def of(
        self,
        chosen: Iterable[Policy],
        *,
        level: bool = True,
        told: Collection[frozenset[Policy]] = (),
    ) -> Iterator[Finding]:
        """What is to be said of these policies beside any other.

        Without `level` nothing is said of overrides of equal priority. Of the pairs in `told` it is
        known already that they reject pods.
        """
        fights: dict[tuple[int, int, _Trouble, bool], list[_Fight]] = {}
        done: set[int] = set()
        for policy in chosen:
            if self._folds <= 0 or self._looks <= 0:
                break
            done.add(self._at[id(policy)])
            for fight in self._fights(policy, done, level=level):
                pair = frozenset((fight.policy, fight.other))
                if fight.trouble is Kind.SOME_PODS_REJECTED and pair in told:
                    continue
                key = (self._at[id(fight.policy)], id(fight.said), fight.trouble, fight.is_to_come)
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
                # Most policies of a large set are for pods of their own.
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
        """What a policy meets in itself."""
        found = self._alone.get(policy.name)
        if found is None:
            settings = [said.setting for said in policy.hard]
            trace = fold((policy.name,), settings).trace
            found = self._alone[policy.name] = frozenset(map(_gist, trace))
        return found


def _between(one: Policy, two: Policy, met: Sequence[_Met], *, level: bool) -> Iterator[_Fight]:
    """What two policies that may match one pod meet in each other."""
    level = level and one.model.spec.priority == two.model.spec.priority
    for each in met:
        if level or each.trouble is not Kind.EQUAL_PRIORITY:
            policy, other = (two, one) if each.second else (one, two)
            yield _Fight(policy, policy.hard[each.at], each.trouble, other)


def alone(policy: Policy) -> Iterator[Finding]:
    """What a policy says that no node meets, by itself or beside what it says otherwise."""
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
    sure = [said for said in required if not isinstance(said.setting, CapacitySetting)]
    for part in ("overrides", "defaults"):
        before: list[LocatedSetting] = []
        for said in policy.of_parts(part):
            if not said.limits:
                continue
            if _is_dropped(policy, [], said):
                what = (
                    f"no pod gets it: no node can meet {said.setting.wanted}{_hint(said.setting)}"
                )
                yield _impossible(policy, said, what)
            elif _is_dropped(policy, sure, said):
                what = "no pod gets it: no node meets it beside the policy's own requirements"
                yield policy.document.finding(said.path, what, "warning", kind=Kind.NEVER_APPLIED)
            elif _is_dropped(policy, before, said):
                what = f"no pod gets it: no node meets it beside the other {part} of the policy"
                yield _impossible(policy, said, what)
            else:
                before.append(said)


def _impossible(policy: Policy, said: LocatedSetting, what: str) -> Finding:
    about = f"{policy.name} {said.setting.part} {said.setting.field}"
    return policy.document.finding(said.path, what, about=about, kind=Kind.IMPOSSIBLE_SETTING)


def _hint(setting: PlacementSetting) -> str:
    """Why no label meets a bound that looks as if some could."""
    requirements = (r for term in limits(setting) for r in term.get("matchExpressions") or ())
    below = (r for r in requirements if r.get("operator") == "Lt")
    if any((int64(value) or 0) <= 0 for r in below for value in r.get("values") or ()):
        return ", for no label is a negative number"
    return ""


def _fold(policy: Policy, some: Iterable[LocatedSetting]) -> Bundle:
    return fold((policy.name,), [said.setting for said in some])


def _first_rejected(policy: Policy, required: Sequence[LocatedSetting]) -> Path:
    rejected = {e.field for e in _fold(policy, required).trace if e.outcome == "rejected"}
    return next(said.path for said in required if said.setting.field in rejected)


def _is_dropped(policy: Policy, before: Sequence[LocatedSetting], said: LocatedSetting) -> bool:
    trace = _fold(policy, [*before, said]).trace
    return any((line.outcome, line.field) == ("dropped", said.setting.field) for line in trace)


def _gist(line: Entry) -> _Gist:
    """A line without its reason, which may name whoever is there."""
    return line.policy, line.part, line.field, line.outcome


def _meet(one: Policy, two: Policy, own: frozenset[_Gist]) -> Iterator[_Met]:
    """What either of two policies, the earlier one first, meets in the other."""
    both = fold((one.name, two.name), [said.setting for said in (*one.hard, *two.hard)])
    lines = {line for line in both.trace if _gist(line) not in own}
    for policy, other in ((one, two), (two, one)):
        for at, said in enumerate(policy.hard):
            setting = said.setting
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
        said.setting.field == setting.field for said in policy.of_parts("overrides")
    )


def _tokens(policy: Policy) -> set[str]:
    """What two policies have to have in common to get into each other's way."""
    found: set[str] = set()
    for said in policy.hard:
        setting = said.setting
        found.update(f"node {key}" for key in said.rivals)
        if isinstance(setting, TolerationSetting):
            found.add(f"toleration {setting.toleration.get('key') or ''}")
        elif not (isinstance(setting, MemberSetting) and setting.map == "nodeSelector"):
            found.add(setting.field)
    return found


def _finding(fights: Sequence[_Fight]) -> Finding:
    policy, said, trouble, _ = fights[0]
    names = list(dict.fromkeys(repr(fight.other.name) for fight in fights))
    kind = "policy" if len(names) == 1 else "policies"
    text = _TEXTS[trouble].format(f"{kind} {first_few(names, _NAMED)}")
    if len(names) > 1:
        text = text.replace(" requires:", " require:").replace(" matches too:", " match too:")
        text = text.replace(" overrides it", " override it")
    text += once_enforced([policy, *(fight.other for fight in fights)])
    return policy.document.finding(said.path, text, "warning", about=trouble, kind=trouble)


def once_enforced(policies: Iterable[Policy]) -> str:
    """When what is said of the policies comes true, if that is not now."""
    names = [repr(each.name) for each in _audited(policies)]
    if not names:
        return ""
    return f", once {first_few(names, _NAMED)} {'is' if len(names) == 1 else 'are'} enforced"


def _audited(policies: Iterable[Policy]) -> list[Policy]:
    return [each for each in dict.fromkeys(policies) if each.model.spec.enforcement == "Audit"]
