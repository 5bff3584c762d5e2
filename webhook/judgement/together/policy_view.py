"""A policy as the other checks see it: settings with places, and the pods it matches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import orjson

from webhook.judgement.together import alone, pod_sets
from webhook.judgement.together.witness import WantedBlock, Witness, find
from webhook.placement import node_affinity
from webhook.placement.fold import fold
from webhook.placement.settings import PARTS, CapacitySetting, PlacementSetting, is_selector
from webhook.policy import compile as compiling
from webhook.policy import operating_system
from webhook.policy.findings import Kind
from webhook.policy.match_model import Match
from webhook.policy.matched_pods import MatchedPods, shared, unmatchable
from webhook.policy.node_settings import limits, tolerations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from webhook.judgement.together.everywhere import Demand
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.shapes import Term
    from webhook.policy.findings import Finding, Path
    from webhook.policy.model import PlacementPolicy, PolicySpec
    from webhook.policy.policy_documents import Document

STEPS_UNTIL_PAUSE: Final = 4_000
# Characters of what is small; the longest policy that ships has three thousand.
LIGHT: Final = 2_000
# Values of a condition that are few; what conditions of more, or of several terms, have in common:
# no label's key begins with a slash, and no field is called so.
_FEW_VALUES: Final = 64
_TERMS: Final = "/terms"
# Settings of a policy that are few.
_FEW_SETTINGS: Final = 8
UNFINISHED: Final = (
    "it is not checked together with all other policies: they are too many, or too large, to check "
    "at once; the condition Satisfiable has the result once the controller has checked the rest, "
    "and `fairlead check` checks all"
)


class Effort:
    """A budget of steps; one step takes some 5 µs.

    What is remembered from before costs as much as what is computed. So it depends on the policies
    alone what is checked, and neither on time nor on what was asked before.
    """

    def __init__(self, most: float, pause: Callable[[], None] = lambda: None) -> None:
        """`pause` is called each STEPS_UNTIL_PAUSE steps; what it raises ends the check."""
        self.left = most
        self._pause = pause
        self._pause_at = most - STEPS_UNTIL_PAUSE
        self.refused = 0

    def spend(self, steps: int = 1) -> bool:
        """Spend steps; return False if too few are left. Nothing can be spent afterwards."""
        self.left -= steps
        if self.left <= self._pause_at:
            self._pause_at = self.left - STEPS_UNTIL_PAUSE
            self._pause()
        if self.left < 0:
            self.refused += 1
            self.left = min(self.left, -1)
        return self.left >= 0

    @property
    def is_over(self) -> bool:
        """Whether the budget was exceeded."""
        return self.left < 0


def unfinished(policy: Policy) -> Finding:
    """Return the warning at a policy for which not everything was checked."""
    return policy.document.finding(
        ("spec",), UNFINISHED, "warning", about=Kind.NOT_CHECKED, kind=Kind.NOT_CHECKED
    )


class LocatedSetting(NamedTuple):
    """One setting, its place in its document, and the node labels and fields that it limits."""

    setting: PlacementSetting
    path: Path
    limits: frozenset[str]

    @property
    def rivals(self) -> frozenset[str]:
        """What another setting must have in common with it to leave no node."""
        terms = limits(self.setting)
        values = sum(
            len(requirement.get("values") or ())
            for term in terms
            for requirement in (
                *(term.get("matchExpressions") or ()),
                *(term.get("matchFields") or ()),
            )
        )
        # Terms multiply, and may become too many to compute.
        return self.limits | {_TERMS} if len(terms) > 1 or values > _FEW_VALUES else self.limits


class ConditionSize(NamedTuple):
    """The number of terms of a condition on nodes, and of requirements and values in all of them.

    settings: of how many settings it is made
    """

    terms: int = 1
    requirements: int = 0
    values: int = 0
    settings: int = 0

    @classmethod
    def of(cls, terms: Sequence[Term]) -> Self:
        """Return the size of these terms."""
        listed = [
            requirement for term in terms for requirement in term.get("matchExpressions") or ()
        ]
        values = sum(len(requirement.get("values") or ()) for requirement in listed)
        return cls(len(terms), len(listed), values, 1)

    def beside(self, other: ConditionSize) -> ConditionSize:
        """Return the size of both together. Their terms multiply; above a limit it is refused."""
        return ConditionSize(
            min(self.terms * other.terms, node_affinity.MAX_TERMS),
            min(
                self.terms * other.requirements + self.requirements * other.terms,
                node_affinity.MAX_REQUIREMENTS,
            ),
            min(self.terms * other.values + self.values * other.terms, node_affinity.MAX_VALUES),
            self.settings + other.settings,
        )

    @property
    def steps(self) -> int:
        """The steps of a fold that has it: it is combined again for each setting."""
        size = self.terms + self.requirements // 2 + self.values // 4
        return size * (1 + self.settings) // 3


def fold_steps(group: Iterable[Policy]) -> int:
    """Return the steps of combining what the policies require of nodes."""
    size = ConditionSize()
    for policy in group:
        size = size.beside(policy.condition)
    return size.steps


class SettingKey(NamedTuple):
    """What another setting must have in common with one to decide what it sets.

    terms: the condition on labels of nodes, unless it is one label with one value; `text` is equal
           if they are
    """

    located: LocatedSetting
    key: Hashable
    terms: Sequence[Term]
    text: bytes


class RankedSetting(NamedTuple):
    """A setting of a policy. Of all settings, those of lower rank are folded first."""

    rank: tuple[int, tuple[int, str]]
    policy: Policy
    key: SettingKey

    @property
    def located(self) -> LocatedSetting:
        """The setting with its place."""
        return self.key.located


@dataclass(frozen=True, eq=False)
class Policy:
    """One policy. `order`: higher priority first, then by name.

    It is kept from set to set, so what depends on it alone is computed once.

    settings: all of its settings
    hard: those of requirements and overrides
    mind: a text that is equal if all settings are
    rollout: the pods for which it is enforced, if not all
    bound: its match within its rollout; its match alone if that leaves no pod
    contradictory: whether its own requirements reject every pod
    work: the cost of folding it with another policy, relative to a small policy, without the terms
          of its conditions on nodes
    work_to_match: the same for testing which pods it matches
    """

    document: Document
    model: PlacementPolicy
    settings: tuple[LocatedSetting, ...]
    hard: tuple[LocatedSetting, ...]
    mind: bytes
    match: MatchedPods
    exclude: tuple[MatchedPods, ...]
    rollout: MatchedPods | None
    bound: Match
    matches_something: bool
    contradictory: bool
    work: int
    work_to_match: int
    system: tuple[int, str] | None

    @cached_property
    def name(self) -> str:
        """The policy's name."""
        return self.model.name

    @cached_property
    def fallbacks(self) -> frozenset[str]:
        """The classes of its settings that may be given up."""
        return frozenset(
            located_setting.setting.capacity.name
            for located_setting in self.settings
            if isinstance(located_setting.setting, CapacitySetting)
            and located_setting.setting.fallback
        )

    @cached_property
    def order(self) -> tuple[int, str]:
        """The sort key of policies."""
        return -self.model.spec.priority, self.model.name

    @cached_property
    def concerns_nodes(self) -> bool:
        """Whether it limits nodes, or tolerates taints."""
        settings = [located_setting.setting for located_setting in self.settings]
        return any(located_setting.limits for located_setting in self.settings) or bool(
            tolerations_of(settings)
        )

    @cached_property
    def node_keys(self) -> frozenset[str]:
        """The labels and fields of nodes that its settings limit."""
        return frozenset[str]().union(
            *(located_setting.limits for located_setting in self.settings)
        )

    @cached_property
    def requirements(self) -> Sequence[LocatedSetting]:
        """The settings of its requirements."""
        return self.of_parts("requirements")

    @cached_property
    def tokens(self) -> frozenset[str]:
        """What another policy must have in common with it to conflict, whatever the nodes are."""
        tokens = set[str]()
        for located in self.hard:
            setting = located.setting
            tokens.update(f"node {key}" for key in located.rivals)
            if not is_selector(setting):
                tokens.add(setting.field)
        return frozenset(tokens)

    @cached_property
    def setting_keys(self) -> Mapping[str, Sequence[SettingKey]]:
        """The keys of its settings, by part."""
        keys_by_part: dict[str, list[SettingKey]] = {}
        for located_setting in self.settings:
            several = located_setting.limits and not is_selector(located_setting.setting)
            terms = limits(located_setting.setting) if several else ()
            key = SettingKey(
                located_setting, located_setting.setting.identity, terms, orjson.dumps(terms)
            )
            keys_by_part.setdefault(located_setting.setting.part, []).append(key)
        return keys_by_part

    @cached_property
    def ranked(self) -> Sequence[RankedSetting]:
        """Its settings with their ranks, which do not depend on other policies."""
        return tuple(
            RankedSetting((order, self.order), self, key)
            for order, part in enumerate(PARTS)
            for key in self.setting_keys.get(part, ())
        )

    @cached_property
    def condition(self) -> ConditionSize:
        """The size of its condition on nodes."""
        size = ConditionSize()
        for keys in self.setting_keys.values():
            for key in keys:
                if key.terms:
                    size = size.beside(ConditionSize.of(key.terms))
                elif key.located.limits:
                    size = size.beside(ConditionSize(1, 1, 1, 1))
        return size

    @cached_property
    def own_findings(self) -> Sequence[Finding]:
        """The findings about it by itself."""
        return tuple(alone.findings(self))

    @cached_property
    def demands(self) -> dict[tuple[int, ...], Demand]:
        """Its requirements as they reject pods, by the positions of those that do not yield."""
        return {}

    @cached_property
    def wanted(self) -> WantedBlock:
        """What a pod has to meet."""
        return WantedBlock(self.model.spec.match or Match())

    @cached_property
    def unwanted(self) -> Sequence[WantedBlock]:
        """What excludes a pod."""
        return [WantedBlock(block) for block in self.model.spec.exclude]

    @cached_property
    def witness(self) -> Witness | None:
        """A pod that it matches; None if none is found."""
        return find((self,))

    @cached_property
    def named_sets(self) -> Sequence[tuple[pod_sets.Value, pod_sets.PodSet]]:
        """The sets of pods with each value that its match names; none of a large match.

        A match may name thousands of values, and a set takes a hundred times as much memory.
        """
        few = len(self.match_text) <= LIGHT
        return tuple(pod_sets.sets_by_value(self)) if few else ()

    @cached_property
    def matched_set(self) -> pod_sets.PodSet:
        """The pods that it matches, or for which its rollout enforces it."""
        return pod_sets.matched_set(self)

    @cached_property
    def match_text(self) -> bytes:
        """A text that is equal if match, exclude and rollout are."""
        spec = compiling.written_spec(self.model)
        return orjson.dumps([spec.get(field) for field in ("match", "exclude", "rollout")])

    def of_parts(self, *parts: str) -> list[LocatedSetting]:
        """Return the settings of these parts."""
        return [
            located_setting
            for located_setting in self.settings
            if located_setting.setting.part in parts
        ]

    def apart(self, other: Policy) -> bool:
        """Return whether certainly no pod gets settings of both."""
        systems = {policy.system[1] for policy in (self, other) if policy.system}
        if len(systems) > 1 and not (self.requirements or other.requirements):
            return True
        return (
            self.match.apart(other.match)
            or any(block.covers(other.match) for block in self.exclude)
            or any(block.covers(self.match) for block in other.exclude)
        )

    @property
    def enforced(self) -> bool:
        """Whether it changes or rejects any pod today."""
        return self.model.spec.enforcement == "Enforce"

    def outruns(self, other: Policy) -> bool:
        """Return whether it certainly changes every pod that the other one may change."""
        return self is other or (self.rollout is None and self.enforced_for(other.match, other))

    def enforced_for(
        self, pods: MatchedPods, other: Policy | None = None, *, required: bool = False
    ) -> bool:
        """Return whether it certainly changes or rejects all of these pods; `other` matches them,
        if any.

        Of a policy for another operating system, only `required` parts apply to a pod.
        """
        if not self.enforced or (self.rollout and not self.rollout.covers(pods)):
            return False
        if self is other:
            return True
        if (
            not required
            and self.system
            and (other is None or other.system is None or self.system[1] != other.system[1])
        ):
            return False
        theirs = other.model.spec.exclude if other else ()
        return self.match.covers(pods) and all(
            block in theirs or reach.apart(pods)
            for block, reach in zip(self.model.spec.exclude, self.exclude, strict=True)
        )


def policy(
    document: Document, model: PlacementPolicy, classes: Mapping[str, CapacityClass]
) -> Policy:
    """Return the policy of a document. Raises KeyError for a class that `classes` does not hold."""
    settings = compiling.settings(model, classes)
    located = tuple(
        LocatedSetting(setting, path, _keys(limits(setting)))
        for setting, path in compiling.located(settings)
    )
    spec = model.spec
    required = [
        located_setting
        for located_setting in located
        if located_setting.setting.part == "requirements"
    ]
    written = compiling.written_spec(model)
    match = spec.match or Match()
    texts = [orjson.dumps(written[part]) if part in written else b"" for part in PARTS]
    blocks_text = orjson.dumps([written.get("match"), written.get("exclude")])
    return Policy(
        document,
        model,
        located,
        tuple(
            located_setting for located_setting in located if not located_setting.setting.is_default
        ),
        b"\n".join(texts),
        MatchedPods(match),
        tuple(MatchedPods(block) for block in spec.exclude),
        MatchedPods(Match(namespaces=spec.rollout.namespaces)) if spec.rollout else None,
        _bound(spec),
        unmatchable(match, spec.exclude) is None,
        bool(
            fold(
                (model.name,), [located_setting.setting for located_setting in required]
            ).contradictions
        ),
        max(1 + sum(map(len, texts)) // LIGHT, _work(len(located), _FEW_SETTINGS)),
        _work(len(blocks_text), LIGHT),
        operating_system.required_system(settings),
    )


def _bound(spec: PolicySpec) -> Match:
    match = spec.match or Match()
    if spec.rollout is None:
        return match
    listed = match.namespaces
    spaces = shared(listed, spec.rollout.namespaces) if listed else spec.rollout.namespaces
    narrowed = match.model_copy(update={"namespaces": list(spaces)})
    return narrowed if spaces and unmatchable(narrowed, spec.exclude) is None else match


def _work(size: int, small: int) -> int:
    """Return the cost of comparing all pairs, relative to a small number of items."""
    return 1 + (size // small) ** 2


def _keys(terms: Sequence[Term]) -> frozenset[str]:
    """Keys of labels and fields; no label's key begins with a slash."""
    fields = (
        f"/{requirement.get('key')}"
        for term in terms
        for requirement in term.get("matchFields") or ()
    )
    return node_affinity.keys(terms) | frozenset(fields)
