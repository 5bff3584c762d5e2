"""Whether policies and capacity classes leave nodes, given the nodes that there are.

Without any pod: what is judged is what a policy alone demands of labels, and what it tolerates. A
pod may bring tolerations of its own: whoever asks knows of those. Nodes that an autoscaled class
makes on demand are no concern while they are absent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement.fold import fold
from webhook.placement.node_settings import limits_nodes, node_settings
from webhook.placement.nodes import taint_text
from webhook.placement.pod import REQUIRED
from webhook.placement.settings import PARTS, CapacitySetting, MemberSetting, PlacementSetting
from webhook.policy.findings import Kind, first_few
from webhook.policy.makers import Makers
from webhook.policy.node_masks import NodeMasks
from webhook.policy.node_settings import tolerations_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import Toleration
    from webhook.policy.findings import Path, Severity
    from webhook.policy.policy_set import PolicySet

_MOST_TAINTS: Final = 3


class Concern(NamedTuple):
    """What is wrong with a document, given the nodes; `path` is within the document."""

    kind: str
    name: str
    path: Path
    message: str
    severity: Severity = "error"
    about: Kind = Kind.NO_NODE


class Reach(NamedTuple):
    """How many nodes a class, or a policy, or one part of it, chooses by labels.

    part:      empty for a class, and for a policy as a whole
    chosen:    None if it asks nothing of labels
    tolerated: of those chosen (of all, if none is chosen) the nodes whose taints it tolerates
    on_demand: if none is tolerated, the autoscaled classes that could make such a node
    """

    kind: str
    name: str
    part: str
    chosen: int | None
    tolerated: int
    on_demand: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feasibility:
    """What the nodes mean to a policy set."""

    total: int
    reaches: tuple[Reach, ...]
    concerns: tuple[Concern, ...]


def feasibility(policies: PolicySet, nodes: Sequence[Node]) -> Feasibility:
    """Every class, then every policy, each part by itself and all of them together."""
    makers = Makers(policies.classes.values(), nodes)
    judging = _Judging(len(nodes), NodeMasks(nodes), makers)
    for name in sorted(policies.classes):
        judging.capacity_class(policies.classes[name])
    for at, policy in enumerate(policies.policies):
        judging.policy(
            _PolicySettings(policy.name, policy.settings), _standing(policies.bundle((at,)))
        )
    return Feasibility(len(nodes), tuple(judging.reaches), tuple(judging.concerns))


def of_policy(
    name: str,
    settings: Sequence[PlacementSetting],
    classes: Iterable[CapacityClass],
    nodes: Sequence[Node],
) -> tuple[Concern, ...]:
    """What is wrong with one policy, given the nodes; `classes` are all of its set."""
    judging = _Judging(len(nodes), NodeMasks(nodes), Makers(classes, nodes))
    judging.policy(_PolicySettings(name, settings), _standing(fold((name,), settings)))
    return tuple(judging.concerns)


def of_class(capacity: CapacityClass, nodes: Sequence[Node]) -> tuple[Concern, ...]:
    """What is wrong with one class, given the nodes."""
    judging = _Judging(len(nodes), NodeMasks(nodes), Makers((), nodes))
    judging.capacity_class(capacity)
    return tuple(judging.concerns)


class _PolicySettings(NamedTuple):
    name: str
    settings: Sequence[PlacementSetting]


def _standing(bundle: Bundle) -> list[PlacementSetting]:
    """The settings of one policy that fold together: of its parts, one may rule out another."""
    return [*node_settings(bundle), *bundle.tolerations]


@dataclass(slots=True)
class _Judging:
    """What has been found so far. Local to one call of `feasibility`."""

    total: int
    nodes: NodeMasks
    makers: Makers
    reaches: list[Reach] = field(default_factory=list)
    concerns: list[Concern] = field(default_factory=list)

    def capacity_class(self, capacity: CapacityClass) -> None:
        """One class: whether there is a node of it."""
        inside = self.nodes.of_class(capacity)
        tolerated = self.nodes.tolerated(inside, capacity.tolerations).bit_count()
        kind = "CapacityClass"
        made = (capacity.name,) if capacity.autoscaled and not tolerated else ()
        self.reaches.append(Reach(kind, capacity.name, "", inside.bit_count(), tolerated, made))
        if not inside and not made:
            what = f"none of the {self.total} nodes is of class {capacity.name}"
            self.concerns.append(Concern(kind, capacity.name, ("spec",), what, "warning"))

    def policy(self, policy: _PolicySettings, standing: Sequence[PlacementSetting]) -> None:
        """One policy; `standing` are those of its settings that stand beside each other."""
        tolerations = list(tolerations_of(standing))
        empty = False
        for part in PARTS:
            settings = [setting for setting in policy.settings if setting.part == part]
            if settings:
                limits, left, made = self._reach(policy, part, settings, tolerations)
                if limits and not left and not made:
                    self.concerns += self._empty(policy, part, limits)
                    empty = True
        limits, left, made = self._reach(policy, "", standing, tolerations)
        if made:
            return
        if limits and not left and not empty:
            what = f"its parts together leave none of the {self.total} nodes"
            self.concerns.append(_of(policy, ("spec",), what))
        elif limits:
            self.concerns += self._tainted(policy, limits, left, tolerations)
        self.concerns += self._closed(policy, tolerations)

    def _reach(
        self,
        policy: _PolicySettings,
        part: str,
        settings: Sequence[PlacementSetting],
        tolerations: Sequence[Toleration],
    ) -> tuple[list[PlacementSetting], int, tuple[str, ...]]:
        """Of the settings those that limit nodes, the nodes that they leave, and who makes such."""
        limits = [setting for setting in settings if limits_nodes(setting)]
        left = self.nodes.chosen(limits)
        tolerated = self.nodes.tolerated(left, tolerations).bit_count()
        count = left.bit_count() if limits else None
        made = () if tolerated else self.makers.of(limits, tolerations)
        self.reaches.append(Reach("PlacementPolicy", policy.name, part, count, tolerated, made))
        return limits, left, made

    def _empty(
        self, policy: _PolicySettings, part: str, limits: Sequence[PlacementSetting]
    ) -> Iterator[Concern]:
        """A part that leaves no node: the settings that do so alone, else all of them together."""
        none = f"none of the {self.total} nodes"
        alone = [setting for setting in limits if not self.nodes.chosen([setting])]
        for setting in alone:
            yield _of(policy, path_of(policy, setting), f"{_said(setting)} leaves {none}")
        if not alone:
            yield _of(policy, ("spec", part), f"these together leave {none}")

    def _tainted(
        self,
        policy: _PolicySettings,
        limits: Sequence[PlacementSetting],
        left: int,
        tolerations: Sequence[Toleration],
    ) -> Iterator[Concern]:
        """Every node that the policy chooses has a taint that it does not tolerate."""
        taints = self._in_the_way(left, tolerations)
        if taints:
            path = path_of(policy, limits[0]) if len(limits) == 1 else ("spec",)
            what = (
                f"tolerates none of the chosen nodes' taints ({left.bit_count()} of {self.total} "
                f"nodes chosen): {taints}; only pods with tolerations of their own can run there"
            )
            yield _of(policy, path, what, about=Kind.TAINTS_NOT_TOLERATED)

    def _closed(
        self, policy: _PolicySettings, tolerations: Sequence[Toleration]
    ) -> Iterator[Concern]:
        """Classes that the policy means to open, yet all of whose nodes stay closed."""
        for setting in policy.settings:
            if (
                isinstance(setting, CapacitySetting)
                and setting.mode.tolerates
                and not setting.mode.requires
            ):
                inside = self.nodes.of_class(setting.capacity)
                taints = self._in_the_way(inside, tolerations)
                if taints:
                    what = (
                        f"{setting.mode} opens none of the {inside.bit_count()} nodes of class "
                        f"{setting.capacity.name}: the policy does not tolerate {taints}"
                    )
                    about = Kind.TAINTS_NOT_TOLERATED
                    yield _of(policy, path_of(policy, setting), what, "warning", about)

    def _in_the_way(self, nodes: int, tolerations: Sequence[Toleration]) -> str:
        """The taints that are not tolerated, if each of the nodes has one; else nothing."""
        found = list(self.nodes.taints(nodes, tolerations))
        if not all(taints for taints, _ in found):
            return ""
        counts: Counter[str] = Counter()
        for taints, on in found:
            for taint in taints:
                counts[taint_text(taint)] += on
        named = [f"{text} (on {count})" for text, count in counts.most_common()]
        return first_few(named, _MOST_TAINTS)


def _of(
    policy: _PolicySettings,
    path: Path,
    message: str,
    severity: Severity = "error",
    about: Kind = Kind.NO_NODE,
) -> Concern:
    return Concern("PlacementPolicy", policy.name, path, message, severity, about)


def path_of(policy: _PolicySettings, setting: PlacementSetting) -> Path:
    """Where in its policy's document a setting that chooses nodes is written."""
    match setting:
        case MemberSetting():
            return ("spec", setting.part, setting.map, setting.key)
        case CapacitySetting():
            listed = [
                other
                for other in policy.settings
                if isinstance(other, CapacitySetting) and other.part == setting.part
            ]
            return ("spec", setting.part, "capacity", listed.index(setting))
    return ("spec", setting.part, "affinity", "nodeAffinity", REQUIRED)


def _said(setting: PlacementSetting) -> str:
    match setting:
        case MemberSetting():
            return f"{setting.key}={setting.value}"
        case CapacitySetting():
            return f"class {setting.capacity.name} with mode {setting.mode}"
    return "required node affinity"
