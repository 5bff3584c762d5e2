"""A policy as the other checks see it: settings with places, and the pods it matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement import node_affinity
from webhook.placement.fold import fold
from webhook.placement.settings import (
    PARTS,
    CapacitySetting,
    PlacementSetting,
)
from webhook.policy import compile as compiling
from webhook.policy import operating_system
from webhook.policy.findings import Kind
from webhook.policy.match_model import Match
from webhook.policy.matched_pods import MatchedPods, shared, unmatchable
from webhook.policy.node_settings import limits, tolerations_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.shapes import Term
    from webhook.policy.findings import Finding, Path
    from webhook.policy.model import PlacementPolicy, PolicySpec
    from webhook.policy.policy_documents import Document

# Characters of what is small; the longest policy that ships has three thousand.
_LIGHT: Final = 2_000
# Values of a condition that are few; what conditions of more, or of several terms, have in common:
# no label's key begins with a slash, and no field is called so.
_FEW_VALUES: Final = 64
_TERMS: Final = "/terms"
# Terms of a condition that are few; settings of a policy that are.
_FEW_TERMS: Final = 5
_FEW: Final = 8
UNFINISHED: Final = (
    "not all is checked: there are too many policies, or too large ones, to hold each against all "
    "others; make the largest smaller, or remove what is not needed"
)


class Effort:
    """A budget of steps; one step takes some 5 µs."""

    def __init__(self, most: int) -> None:
        self.left = most

    def spend(self, steps: int = 1) -> bool:
        """Spend steps; return False if too few are left."""
        self.left -= steps
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


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """One policy. `order`: higher priority first, then by name.

    settings: all of its settings
    hard: those of requirements and overrides
    mind: a text that is equal if all settings are
    rollout: the pods for which it is enforced, if not all
    bound: its match within its rollout; its match alone if that leaves no pod
    contradictory: whether its own requirements reject every pod
    work: the cost of folding it with another policy, relative to a small policy
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

    @property
    def name(self) -> str:
        """The policy's name."""
        return self.model.name

    @property
    def fallbacks(self) -> frozenset[str]:
        """The classes of its settings that may be given up."""
        return frozenset(
            each.setting.capacity.name
            for each in self.settings
            if isinstance(each.setting, CapacitySetting) and each.setting.fallback
        )

    @property
    def order(self) -> tuple[int, str]:
        """The sort key of policies."""
        return -self.model.spec.priority, self.model.name

    @property
    def concerns_nodes(self) -> bool:
        """Whether it limits nodes, or tolerates taints."""
        settings = [each.setting for each in self.settings]
        return any(each.limits for each in self.settings) or any(tolerations_of(settings))

    def of_parts(self, *parts: str) -> list[LocatedSetting]:
        """Return the settings of these parts."""
        return [each for each in self.settings if each.setting.part in parts]

    def apart(self, other: Policy) -> bool:
        """Return whether certainly no pod gets settings of both."""
        systems = {each.system[1] for each in (self, other) if each.system}
        if len(systems) > 1 and not (
            self.of_parts("requirements") or other.of_parts("requirements")
        ):
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
        self, pods: MatchedPods, of: Policy | None = None, *, required: bool = False
    ) -> bool:
        """Return whether it certainly changes or rejects all of these pods; `of` matches them, if
        any.

        Of a policy for another operating system, only `required` parts apply to a pod.
        """
        if not self.enforced or (self.rollout and not self.rollout.covers(pods)):
            return False
        if self is of:
            return True
        if (
            not required
            and self.system
            and (of is None or of.system is None or self.system[1] != of.system[1])
        ):
            return False
        theirs = of.model.spec.exclude if of else ()
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
        LocatedSetting(each, path, _keys(limits(each)))
        for each, path in compiling.located(settings)
    )
    spec = model.spec
    required = [each for each in located if each.setting.part == "requirements"]
    parts = (spec.requirements, spec.overrides, spec.defaults)
    match = spec.match or Match()
    blocks = (match, *spec.exclude)
    texts = [part.model_dump_json(exclude_none=True) if part else "" for part in parts]
    return Policy(
        document,
        model,
        located,
        tuple(each for each in located if not each.setting.is_default),
        "\n".join(texts).encode(),
        MatchedPods(match),
        tuple(MatchedPods(block) for block in spec.exclude),
        MatchedPods(Match(namespaces=spec.rollout.namespaces)) if spec.rollout else None,
        _bound(spec),
        unmatchable(match, spec.exclude) is None,
        bool(fold((model.name,), [each.setting for each in required]).contradictions),
        max(
            _work(sum(map(len, texts)), _LIGHT),
            _work(len(located), _FEW),
            _work(max((len(limits(setting)) for setting in settings), default=0), _FEW_TERMS),
        ),
        _work(sum(len(each.model_dump_json(exclude_none=True)) for each in blocks), _LIGHT),
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
    fields = (f"/{each.get('key')}" for term in terms for each in term.get("matchFields") or ())
    return node_affinity.keys(terms) | frozenset(fields)


def rank(located: LocatedSetting, at: int) -> tuple[int, int]:
    """Return the position of a setting in the fold, for the policy at `at`; lower is earlier."""
    return PARTS.index(located.setting.part), at
