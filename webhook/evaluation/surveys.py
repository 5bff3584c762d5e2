"""Which nodes admit a pod before and after its decision, and why that may be unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement import on_demand
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import obstacle, stay, survey
from webhook.placement.plugin_tolerations import RESTRICTION
from webhook.placement.pod_requests import DEVICE_CLASS, devices_among, requests, with_devices
from webhook.placement.runtime_class import deciding_plugins, tolerating, unread_class
from webhook.placement.shapes import as_object, objects_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.evaluation.plugins import PluginInputs
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node, Survey
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Toleration

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# Volumes whose claims may be bound to a node, a zone or a limited number on each node.
_CLAIMS: Final = ("persistentVolumeClaim", "ephemeral")


class Unknown(NamedTuple):
    """What is not known and decides; `objects` say it, none for a plugin that may run.

    `short` is the reason in a few words, `remedy` the cure if no object and no plugin is one.
    """

    reason: str
    objects: str = ""
    short: str = ""
    remedy: str = ""

    def cure(self, place: str, plugins: str) -> str:
        """Return what to give; `place` says where objects are given, `plugins` names the option for
        plugins."""
        return self.remedy or f"give {f'{self.objects} {place}' if self.objects else plugins}"


class Unread(NamedTuple):
    """What decides which nodes admit a pod, and is not known.

    runtime_class: its RuntimeClass, which is not read
    annotation:    a plugin that runs adds tolerations of its namespace, which is not read
    plugins:       those that decide by their tolerations, and may run or not
    devices:       resources that no node has, and that a DeviceClass may provide
    """

    runtime_class: str = ""
    annotation: bool = False
    plugins: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        runtime_class: str,
        plugins: Sequence[str],
        devices: Sequence[str],
        inputs: PluginInputs,
    ) -> Unread:
        """Return what is not known, as the rows of a plugin that runs come from its namespace."""
        unsure = tuple([plugin for plugin in plugins if plugin not in inputs.running])
        return cls(runtime_class, len(unsure) < len(plugins), unsure, tuple(devices))

    @property
    def what(self) -> str:
        """What it is, as `without` is followed by it; empty for nothing."""
        if self.runtime_class:
            return f"RuntimeClass {self.runtime_class}"
        if self.annotation:
            return "the namespace's annotation"
        if self.plugins:
            return f"plugin {', '.join(self.plugins)}"
        return f"a {DEVICE_CLASS}" if self.devices else ""

    @property
    def state(self) -> str:
        """What is not known of it, in a few words."""
        if self.runtime_class or self.annotation:
            return f"{self.what} is not read"
        if self.plugins:
            return f"{self.what} may run or not"
        return f"a {DEVICE_CLASS} may provide {', '.join(self.devices)}"

    @property
    def unknown(self) -> Unknown:
        """Why the nodes are unknown."""
        if self.runtime_class:
            what = f"the nodeSelector, tolerations and overhead of {self.what}"
            return Unknown(f"{what} are not read", self.what)
        if self.annotation:
            what = f"{RESTRICTION} adds tolerations by an annotation of the namespace"
            return Unknown(f"{what}, which is not read", "the Namespace")
        if self.plugins:
            return Unknown(f"the API server may run the {self.what}, which adds tolerations")
        return Unknown(f"{self.state}, and DeviceClasses are not read", "DeviceClasses")


class Surveys(NamedTuple):
    """The nodes that admit the pod as it came, and with the patch; None if there is none.

    `on_demand`: if none admits it in the end, the autoscaled classes that could make one.
    `unread`: what decides of the pod as it would be, and is not known; `unread_before`: the same of
    the pod as it came.
    `not_judged`: what of the pod as it would be also decides about nodes, and nobody was asked;
    `differs`: it is not the same as of the pod as it came.
    `evicting`: of the nodes that admit it in the end, those that evict it, after so many seconds.
    """

    before: Survey
    after: Survey | None
    on_demand: tuple[str, ...] = ()
    unread: Unread = Unread()
    evicting: Mapping[str, int] = {}
    unread_before: Unread = Unread()
    not_judged: Sequence[str] = ()
    differs: bool = False

    @property
    def evictions(self) -> str:
        """Which nodes evict the pod, and when; empty for none."""
        if not self.evicting:
            return ""
        count, first = len(self.evicting), min(self.evicting.values())
        last = max(self.evicting.values())
        after = f"{first} s" if first == last else f"{first} to {last} s"
        which = f"{count} of the {len(self.last.admitted)} nodes that admit it"
        return (
            f"{which} evict{'s' if count == 1 else ''} it after {after}, by its tolerationSeconds"
        )

    @property
    def last(self) -> Survey:
        """The nodes that admit the pod as it would be."""
        return self.after or self.before

    @property
    def none_left(self) -> bool:
        """Return True if it is known that no node admits the pod, and none can be made."""
        return not (self.last.admitted or self.on_demand or self.unread.what)


def survey_pod(
    nodes: Sequence[Node],
    asked: Sequence[tuple[PodPlacement, Mapping[str, int]]],
    added: Mapping[str, Sequence[Toleration]],
    inputs: PluginInputs,
    classes: Mapping[str, CapacityClass],
    made: PodPlacement | None = None,
) -> Surveys:
    """Survey the nodes for a pod as it came, and as it would be unless it is the same.

    asked:  placement and requests of each, as `with_devices` returns them
    added:  the tolerations that plugins add which may run or not
    inputs: what is known of RuntimeClasses and DeviceClasses
    made:   that by which a DaemonSet's controller chooses nodes; no plugin adds to it
    """
    before, *after = [survey(*pod_request, nodes, made) for pod_request in asked]
    added = {} if made else added
    final, _ = asked[-1]
    unread = [_unread(*pod_request, nodes, added, inputs) for pod_request in asked]
    surveys = Surveys(
        before, after[0] if after else None, unread=unread[-1], unread_before=unread[0]
    )
    if surveys.last.admitted:
        names = frozenset(surveys.last.admitted)
        times = {
            node.name: stay(final, node) for node in nodes if node.taints and node.name in names
        }
        evicting = {name: seconds for name, seconds in times.items() if seconds is not None}
        return surveys._replace(evicting=evicting)
    if not after or surveys.unread.what:
        return surveys
    groups = NodeGroups(nodes)
    makers = tuple(on_demand.makers(final, classes.values(), groups))
    wide = tolerating(final, added)
    if not makers and added and [*on_demand.makers(wide, classes.values(), groups)]:
        return surveys._replace(unread=Unread.of("", [*added], (), inputs))
    return surveys._replace(on_demand=makers)


def _unread(
    pod: PodPlacement,
    requested: Mapping[str, int],
    nodes: Sequence[Node],
    added: Mapping[str, Sequence[Toleration]],
    inputs: PluginInputs,
) -> Unread:
    is_class_read = pod.runtime_class_name in inputs.runtime_classes
    # What DeviceClasses may provide, if they are not known.
    wide = with_devices(requested, inputs.devices, [node.allocatable for node in nodes])
    devices = devices_among(wide.keys() - requested.keys())
    if devices:
        tolerant = tolerating(pod, added)
        if not any(obstacle(tolerant, wide, node) is None for node in nodes):
            devices = ()
    return Unread.of(
        "" if is_class_read else unread_class(pod, wide, nodes),
        deciding_plugins(pod, wide, nodes, added) if added else (),
        devices,
        inputs,
    )


def not_judged(spec: JsonObject, requested: Mapping[str, int]) -> Mapping[str, object]:
    """Return the fields of a v1.PodSpec, and requested devices, that also decide where it runs, and
    are not asked of a node that is judged by itself, with what they ask.

    `requested`: the resources, as `with_devices` returns them.

    None for a bound pod, which no scheduler judges. Source: k8s.io/kubernetes v1.36, the
    scheduler's plugins podtopologyspread, interpodaffinity, volumebinding, volumezone,
    nodevolumelimits and dynamicresources.
    """
    if spec.get("nodeName"):
        return {}
    affinity = as_object(spec.get("affinity"))
    spread = objects_in(spec.get("topologySpreadConstraints"))
    fields: dict[str, object] = {
        "topologySpreadConstraints": [
            constraint
            for constraint in spread
            if constraint.get("whenUnsatisfiable") == "DoNotSchedule"
        ],
        **{
            name: as_object(affinity.get(name)).get(_REQUIRED)
            for name in ("podAffinity", "podAntiAffinity")
        },
        "volumes": [
            volume for volume in objects_in(spec.get("volumes")) if any(map(volume.get, _CLAIMS))
        ],
        "resourceClaims": spec.get("resourceClaims"),
    }
    counts = requests(spec)
    devices = {name: counts.get(name) for name in devices_among(requested)}
    return {name: value for name, value in fields.items() if value} | devices
