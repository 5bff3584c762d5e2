"""Check whether policies and classes leave any of the given nodes.

Without a pod: only a policy's own conditions on labels and its tolerations are checked. A pod may
have tolerations of its own. Nodes that an autoscaled class creates on demand may be absent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.fold import fold
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import taint_text
from webhook.placement.placement_setting import PARTS, PlacementSetting
from webhook.placement.plugin_tolerations import EXTENDED
from webhook.placement.pod_requests import is_extended
from webhook.placement.tolerations import NO_EXECUTE
from webhook.policy.compile import located
from webhook.policy.findings import Kind
from webhook.policy.namespace_values import may_match, namespace_values
from webhook.policy.node_settings import (
    count,
    groups_by,
    limits,
    makers,
    meets,
    nodes_meeting,
    runtime_class_of,
    tolerations_of,
    untolerated,
    with_runtime_class,
)
from webhook.policy.policy_set import Variant
from webhook.shortening import count_text, first_few

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.namespace_setting import NamespaceSetting
    from webhook.placement.node_groups import Alike
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject, Term, Toleration
    from webhook.policy.findings import Path, Severity
    from webhook.policy.policy_set import Policy, PolicySet

_MOST_TAINTS: Final = 3
_MOST_NAMESPACES: Final = 3


class Concern(NamedTuple):
    """A problem of a document with these nodes; `path` is within the document."""

    kind: str
    name: str
    path: Path
    message: str
    severity: Severity = "error"
    about: Kind = Kind.NO_NODE


class MatchedNodes(NamedTuple):
    """How many nodes a class, a policy, or one part of a policy matches by labels.

    part:      empty for a class, and for a policy as a whole; in a split with the share: split[0]
    chosen:    None if it has no condition on labels
    tolerated: of those chosen (of all, if none is chosen) the nodes whose taints it tolerates;
               None if a RuntimeClass decides that
    on_demand: if none is tolerated, the autoscaled classes that could make such a node
    unread:    the RuntimeClass that decides, if it is not known
    """

    kind: str
    name: str
    part: str
    chosen: int | None
    tolerated: int | None
    on_demand: tuple[str, ...] = ()
    unread: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it is about a class, or all parts of a policy."""
        return not self.part or self.part.startswith("split[")


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The result for a policy set and these nodes."""

    total: int
    reaches: tuple[MatchedNodes, ...]
    concerns: tuple[Concern, ...]


def feasibility(
    policies: PolicySet,
    nodes: Sequence[Node],
    runtime_classes: Mapping[str, JsonObject],
    devices: Container[str] | None = None,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
) -> Feasibility:
    """Check every class, then every policy, each part by itself and all parts together.

    `runtime_classes` are the RuntimeClasses by name, `devices` the resources that DeviceClasses
    provide, both as far as they are known. With `namespaces`, labels by name, a policy is also
    checked with the values that it takes from each.
    """
    classes = tuple(policies.classes.values())
    judging = _Judging(NodeGroups(nodes), classes, runtime_classes, devices or ())
    for name in sorted(policies.classes):
        judging.capacity_class(policies.classes[name])
    for policy in policies.policies:
        if policy.team:
            continue
        for share, settings in enumerate(policy.variants):
            part = f"split[{share}]" if policy.shares else ""
            judging.policy(_PolicySettings(policy.name, settings, part, policy.enforced))
        judging.concerns += _in_namespaces(policy, namespaces or {}, judging)
    return Feasibility(len(nodes), tuple(judging.reaches), tuple(judging.concerns))


def _in_namespaces(
    policy: Policy, namespaces: Mapping[str, Mapping[str, str]], judging: _Judging
) -> Iterator[Concern]:
    """Yield what is wrong with the values that a policy takes from namespaces.

    Of several namespaces with equal values, one is checked.
    """
    spaces_by_values: dict[tuple[str, ...], list[str]] = {}
    for name, labels in sorted(namespaces.items()) if policy.namespace_labels else ():
        if may_match(policy, name, labels):
            spaces_by_values.setdefault(policy.values_of(labels), []).append(name)
    reported = {concern.path for concern in judging.concerns if concern.name == policy.name}
    for values, spaces in spaces_by_values.items():
        for share in range(len(policy.variants)):
            settings = policy.settings_of(Variant(share, (), values))
            tried = replace(judging, reaches=[], concerns=[])
            tried.policy(_PolicySettings(policy.name, settings, "", policy.enforced))
            where = first_few(spaces, _MOST_NAMESPACES)
            pairs = zip(policy.namespace_labels, values, strict=True)
            given = ", ".join(f"{label}={value}" for label, value in pairs if value)
            for concern in tried.concerns:
                if concern.path not in reported:
                    message = f"in namespace {where}, with {given}: {concern.message}"
                    yield concern._replace(message=message, severity="warning")


def missing_values(
    policies: PolicySet, namespaces: Mapping[str, Mapping[str, str]]
) -> Iterator[Concern]:
    """Yield the settings that reject pods of some of the namespaces for want of a value."""
    lacking: dict[tuple[str, Path], tuple[NamespaceSetting, list[str]]] = {}
    for row in namespace_values(policies.policies, namespaces):
        if row.rejects:
            key = (row.policy, ("spec", row.setting.part, *row.setting.place))
            lacking.setdefault(key, (row.setting, []))[1].append(row.namespace)
    for (policy, path), (setting, spaces) in lacking.items():
        where = f"{count_text(len(spaces), 'namespace')} ({first_few(spaces, _MOST_NAMESPACES)})"
        what = f"has no value in {where}, without the label {setting.label}: pods are rejected"
        kind = Kind.SOME_PODS_REJECTED
        yield Concern("PlacementPolicy", policy, path, what, "warning", kind)


def unreached(
    policies: PolicySet, nodes: Sequence[Node], runtime_classes: Mapping[str, JsonObject]
) -> list[Alike]:
    """Return the nodes that no policy's labels choose and tolerations admit, in groups.

    A policy whose RuntimeClass is not known is assumed to tolerate what it chooses.
    """
    reaching: list[tuple[Sequence[Sequence[Term]], Sequence[Toleration] | None]] = []
    for policy in policies.policies:
        for settings in policy.variants:
            standing = _standing(_PolicySettings(policy.name, settings), runtime_classes)
            named = _runtime_class(settings)
            class_exists = not named or named in runtime_classes
            conditions = [terms for setting in standing if (terms := limits(setting))]
            reaching.append((conditions, tolerations_of(standing) if class_exists else None))
    every = [terms for conditions, _ in reaching for terms in conditions]
    return [
        group
        for group in groups_by(every, NodeGroups(nodes))
        if not any(
            meets(group.node, conditions)
            and (tolerations is None or not untolerated(group.node, tolerations))
            for conditions, tolerations in reaching
        )
    ]


def _standing(
    policy: _PolicySettings, runtime_classes: Mapping[str, JsonObject]
) -> list[PlacementSetting]:
    """Return the settings that folding leaves, and those of the RuntimeClass."""
    bundle = fold((policy.name,), policy.settings)
    return list(with_runtime_class(bundle.accepted, runtime_classes))


class _PolicySettings(NamedTuple):
    name: str
    settings: Sequence[PlacementSetting]
    share: str = ""
    enforced: bool = True

    def path_of(self, setting: PlacementSetting) -> Path:
        """Return where one of the settings is written in the policy's document."""
        return next(
            path
            for located_setting, path in located(self.settings)
            if located_setting is setting or located_setting == setting
        )


@dataclass(slots=True)
class _Judging:
    """The results so far. Local to one call of `feasibility`."""

    nodes: NodeGroups
    classes: Sequence[CapacityClass]
    runtime_classes: Mapping[str, JsonObject]
    devices: Container[str]
    reaches: list[MatchedNodes] = field(default_factory=list)
    concerns: list[Concern] = field(default_factory=list)

    def capacity_class(self, capacity: CapacityClass) -> None:
        """Check one class: whether it has a node."""
        inside = nodes_meeting([capacity.inside], self.nodes)
        tolerated = _tolerated(inside, capacity.tolerations)
        kind = "CapacityClass"
        made = (capacity.name,) if capacity.autoscaled and not tolerated else ()
        self.reaches.append(MatchedNodes(kind, capacity.name, "", count(inside), tolerated, made))
        if not inside and not made:
            what = f"none of the {len(self.nodes)} nodes is of class {capacity.name}"
            self.concerns.append(Concern(kind, capacity.name, ("spec",), what, "warning"))

    def policy(self, policy: _PolicySettings) -> None:
        """Check one policy by those of its settings that folding leaves: a part may exclude
        another."""
        standing = _standing(policy, self.runtime_classes)
        tolerations = tolerations_of(standing)
        empty = False
        for part in PARTS:
            settings = [setting for setting in policy.settings if setting.part == part]
            if settings:
                limiting, left, made = self._reach(policy, part, settings, tolerations)
                if limiting and not left and not made:
                    self.concerns += self._empty(policy, part, limiting)
                    empty = True
        limiting, left, made = self._reach(policy, "", standing, tolerations)
        if made:
            return
        if limiting and not left and not empty:
            name = _runtime_class(policy.settings)
            beside = f" and RuntimeClass {name}" if name in self.runtime_classes else ""
            what = f"its parts{beside} together leave none of the {len(self.nodes)} nodes"
            self.concerns.append(_concern(policy, ("spec",), what))
        elif limiting:
            self.concerns += self._tainted(policy, limiting, left, tolerations)
        self.concerns += self._closed(policy, tolerations)

    def _reach(
        self,
        policy: _PolicySettings,
        part: str,
        settings: Sequence[PlacementSetting],
        tolerations: Sequence[Toleration],
    ) -> tuple[list[PlacementSetting], list[Alike], tuple[str, ...]]:
        """Return the settings that restrict nodes, the nodes that they leave, and classes that
        create such.
        """
        limiting = [setting for setting in settings if limits(setting)]
        left = nodes_meeting([*map(limits, limiting)], self.nodes)
        tolerated = _tolerated(left, tolerations)
        chosen = count(left) if limiting else None
        made = () if tolerated else makers(self.classes, self.nodes, limiting, tolerations)
        named = _runtime_class(policy.settings)
        unread = named if left and named not in self.runtime_classes else ""
        of_taints = None if unread else tolerated
        which = f"{part} {policy.share}".strip()
        self.reaches.append(
            MatchedNodes("PlacementPolicy", policy.name, which, chosen, of_taints, made, unread)
        )
        return limiting, left, made

    def _empty(
        self, policy: _PolicySettings, part: str, limiting: Sequence[PlacementSetting]
    ) -> Iterator[Concern]:
        """Report a part that leaves no node: by single settings, or by all of them together."""
        none = f"none of the {len(self.nodes)} nodes"
        alone = [
            setting for setting in limiting if not nodes_meeting([limits(setting)], self.nodes)
        ]
        for setting in alone:
            yield _concern(
                policy, policy.path_of(setting), f"{setting.describe_limit} leaves {none}"
            )
        if not alone:
            yield _concern(policy, ("spec", part), f"these together leave {none}")

    def _tainted(
        self,
        policy: _PolicySettings,
        limiting: Sequence[PlacementSetting],
        left: Sequence[Alike],
        tolerations: Sequence[Toleration],
    ) -> Iterator[Concern]:
        """Report that every node that the policy chooses has a taint that it does not tolerate."""
        taints = _blocking_taints(left, tolerations)
        if taints:
            alone = len(limiting) == 1 and limiting[0] in policy.settings
            path = policy.path_of(limiting[0]) if alone else ("spec",)
            what = (
                f"tolerates none of the chosen nodes' taints ({count(left)} of {len(self.nodes)} "
                f"nodes chosen): {taints}; only pods with tolerations of their own can run there"
            )
            if resources := self._requested(left, tolerations):
                what += f", and where {EXTENDED} runs, pods that request {', '.join(resources)}"
                yield _concern(policy, path, what, "warning", Kind.PLUGIN_TOLERATES)
            else:
                yield _concern(policy, path, what, about=Kind.TAINTS_NOT_TOLERATED)

    def _requested(
        self, nodes: Iterable[Alike], tolerations: Sequence[Toleration]
    ) -> Sequence[str]:
        """Return the resources whose request opens a node, by a plugin that tolerates taints of
        their names; empty if that opens none.

        A key such as cloud.google.com/gke-spot has the form of a resource, and no node has it.
        """
        for group in nodes:
            rooms = [room for room, _ in group.rooms.values()]
            offered = [
                key
                for taint in untolerated(group.node, tolerations)
                if taint.get("effect") != NO_EXECUTE and is_extended(key := taint.get("key", ""))
                if key in self.devices or any(room is None or room.get(key) for room in rooms)
            ]
            if len(offered) == len(untolerated(group.node, tolerations)):
                return list(dict.fromkeys(offered))
        return ()

    def _closed(
        self, policy: _PolicySettings, tolerations: Sequence[Toleration]
    ) -> Iterator[Concern]:
        """Report classes that the policy allows, and all of whose nodes have other taints."""
        for setting in policy.settings:
            if (
                isinstance(setting, CapacitySetting)
                and setting.mode.tolerates
                and not setting.mode.requires
            ):
                inside = nodes_meeting([setting.capacity.inside], self.nodes)
                taints = _blocking_taints(inside, tolerations)
                if taints:
                    what = (
                        f"{setting.mode} opens none of the {count(inside)} nodes of class "
                        f"{setting.capacity.name}: the policy does not tolerate {taints}"
                    )
                    about = Kind.TAINTS_NOT_TOLERATED
                    yield _concern(policy, policy.path_of(setting), what, "warning", about)


def _tolerated(nodes: Iterable[Alike], tolerations: Sequence[Toleration]) -> int:
    return count(group for group in nodes if not untolerated(group.node, tolerations))


def _blocking_taints(nodes: Iterable[Alike], tolerations: Sequence[Toleration]) -> str:
    """Return the taints that are not tolerated, if every node has one; else none."""
    blocked_groups = [(untolerated(group.node, tolerations), group.count) for group in nodes]
    if not all(taints for taints, _ in blocked_groups):
        return ""
    counts: Counter[str] = Counter()
    for taints, on in blocked_groups:
        for taint in taints:
            counts[taint_text(taint)] += on
    named = [f"{text} (on {number})" for text, number in counts.most_common()]
    return first_few(named, _MOST_TAINTS)


def _runtime_class(settings: Iterable[PlacementSetting]) -> str:
    """Return the RuntimeClass that the settings name; empty if there is none."""
    return next(filter(None, map(runtime_class_of, settings)), "")


def _concern(
    policy: _PolicySettings,
    path: Path,
    message: str,
    severity: Severity = "error",
    about: Kind = Kind.NO_NODE,
) -> Concern:
    if not policy.enforced:
        # It changes no pod yet.
        severity = "warning"
        message += ", once the policy is enforced"
    return Concern("PlacementPolicy", policy.name, path, message, severity, about)
