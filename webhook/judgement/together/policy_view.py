"""A policy as the other checks see it: settings with places, and the pods it matches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import orjson

from webhook.judgement.together import pod_sets, single_policy
from webhook.judgement.together.effort import ConditionSize
from webhook.judgement.together.located_settings import locate, rank
from webhook.judgement.together.witness import WantedBlock, Witness, find
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.fold import fold
from webhook.placement.placement_setting import PARTS
from webhook.placement.settings import is_selector
from webhook.policy import compile as compiling
from webhook.policy import operating_system
from webhook.policy.match_model import Match
from webhook.policy.matched_pods import MatchedPods, shared, unmatchable
from webhook.policy.node_settings import tolerations_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.judgement.together.everywhere import Demand
    from webhook.judgement.together.located_settings import LocatedSetting, RankedSetting
    from webhook.placement.capacity import CapacityClass
    from webhook.policy.findings import Finding
    from webhook.policy.model import PlacementPolicy, PolicySpec
    from webhook.policy.policy_documents import Document

# Characters of what is small; the longest policy that ships has three thousand.
LIGHT: Final = 2_000
# Settings of a policy that are few.
_FEW_SETTINGS: Final = 8


@dataclass(frozen=True, eq=False)
class Policy:
    """One policy. `order`: higher priority first, then by name.

    It is kept from set to set, so what depends on it alone is computed once.

    settings: all of its settings
    non_defaults: those of requirements and overrides
    settings_text: a text that is equal if all settings are
    rollout: the pods for which it is enforced, if not all
    enforced_match: its match within its rollout; its match alone if that leaves no pod
    contradictory: whether its own requirements reject every pod
    fold_work: the cost of folding it with another policy, relative to a small policy, without the
               terms of its conditions on nodes
    match_work: the same for testing which pods it matches
    """

    document: Document
    model: PlacementPolicy
    settings: tuple[LocatedSetting, ...]
    non_defaults: tuple[LocatedSetting, ...]
    settings_text: bytes
    match: MatchedPods
    exclude: tuple[MatchedPods, ...]
    rollout: MatchedPods | None
    enforced_match: Match
    matches_something: bool
    contradictory: bool
    fold_work: int
    match_work: int
    system: tuple[int, str] | None

    @cached_property
    def name(self) -> str:
        """The policy's name."""
        return self.model.name

    @cached_property
    def fallbacks(self) -> frozenset[str]:
        """The classes of its settings that may be given up."""
        return frozenset(
            located.setting.capacity.name
            for located in self.settings
            if isinstance(located.setting, CapacitySetting) and located.setting.fallback
        )

    @cached_property
    def order(self) -> tuple[int, str]:
        """The sort key of policies."""
        return -self.model.spec.priority, self.model.name

    @cached_property
    def concerns_nodes(self) -> bool:
        """Whether it limits nodes, or tolerates taints."""
        settings = [located.setting for located in self.settings]
        return any(located.node_keys for located in self.settings) or bool(tolerations_of(settings))

    @cached_property
    def node_keys(self) -> frozenset[str]:
        """The labels and fields of nodes that its settings limit."""
        return frozenset[str]().union(*(located.node_keys for located in self.settings))

    @cached_property
    def requirements(self) -> Sequence[LocatedSetting]:
        """The settings of its requirements."""
        return self.settings_of("requirements")

    @cached_property
    def conflict_keys(self) -> frozenset[str]:
        """What another policy must have in common with it to conflict, whatever the nodes are."""
        conflict_keys = set[str]()
        for located in self.non_defaults:
            setting = located.setting
            conflict_keys.update(f"node {key}" for key in located.conflict_keys)
            if not is_selector(setting):
                conflict_keys.add(setting.field)
        return frozenset(conflict_keys)

    @cached_property
    def ranked(self) -> Sequence[RankedSetting]:
        """Its settings with their ranks, in the order of these."""
        return sorted((rank(self, located) for located in self.settings), key=attrgetter("rank"))

    @cached_property
    def condition(self) -> ConditionSize:
        """The size of its condition on nodes."""
        size = ConditionSize()
        for setting in self.ranked:
            if setting.terms:
                size = size.beside(ConditionSize.of(setting.terms))
            elif setting.located.node_keys:
                size = size.beside(ConditionSize(1, 1, 1, 1))
        return size

    @cached_property
    def findings(self) -> Sequence[Finding]:
        """The findings about it by itself."""
        return tuple(single_policy.findings(self))

    @cached_property
    def demands(self) -> dict[tuple[int, ...], Demand]:
        """Its requirements as they reject pods, by the positions of those that do not yield."""
        return {}

    @cached_property
    def match_block(self) -> WantedBlock:
        """What a pod has to meet."""
        return WantedBlock(self.model.spec.match or Match())

    @cached_property
    def exclude_blocks(self) -> Sequence[WantedBlock]:
        """What excludes a pod."""
        return [WantedBlock(block) for block in self.model.spec.exclude]

    @cached_property
    def witness(self) -> Witness | None:
        """A pod that it matches; None if none is found."""
        return find((self,))

    @cached_property
    def pod_sets_by_value(self) -> Sequence[tuple[pod_sets.Value, pod_sets.PodSet]]:
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

    def settings_of(self, *parts: str) -> list[LocatedSetting]:
        """Return the settings of these parts."""
        return [located for located in self.settings if located.setting.part in parts]

    def is_disjoint(self, other: Policy) -> bool:
        """Return whether certainly no pod gets settings of both."""
        systems = {policy.system[1] for policy in (self, other) if policy.system}
        if len(systems) > 1 and not (self.requirements or other.requirements):
            return True
        return (
            self.match.is_disjoint(other.match)
            or any(block.covers(other.match) for block in self.exclude)
            or any(block.covers(self.match) for block in other.exclude)
        )

    @property
    def enforced(self) -> bool:
        """Whether it changes or rejects any pod today."""
        return self.model.spec.enforcement == "Enforce"

    def is_enforced_wherever(self, other: Policy) -> bool:
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
            block in theirs or reach.is_disjoint(pods)
            for block, reach in zip(self.model.spec.exclude, self.exclude, strict=True)
        )


def policy(
    document: Document, model: PlacementPolicy, classes: Mapping[str, CapacityClass]
) -> Policy:
    """Return the policy of a document. Raises KeyError for a class that `classes` does not hold."""
    settings = compiling.settings(model, classes)
    located = tuple(locate(setting, path) for setting, path in compiling.located(settings))
    required = [entry.setting for entry in located if entry.setting.part == "requirements"]
    spec, written = model.spec, compiling.written_spec(model)
    match = spec.match or Match()
    texts = [orjson.dumps(written[part]) if part in written else b"" for part in PARTS]
    blocks_text = orjson.dumps([written.get("match"), written.get("exclude")])
    return Policy(
        document=document,
        model=model,
        settings=located,
        non_defaults=tuple(entry for entry in located if not entry.setting.is_default),
        settings_text=b"\n".join(texts),
        match=MatchedPods(match),
        exclude=tuple(MatchedPods(block) for block in spec.exclude),
        rollout=MatchedPods(Match(namespaces=spec.rollout.namespaces)) if spec.rollout else None,
        enforced_match=_enforced_match(spec),
        matches_something=unmatchable(match, spec.exclude) is None,
        contradictory=bool(fold((model.name,), required).contradictions),
        fold_work=max(1 + sum(map(len, texts)) // LIGHT, _work(len(located), _FEW_SETTINGS)),
        match_work=_work(len(blocks_text), LIGHT),
        system=operating_system.required_system(settings),
    )


def _enforced_match(spec: PolicySpec) -> Match:
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
