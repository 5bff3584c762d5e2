"""Which nodes admit a pod before and after its decision, and why that may be unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement import on_demand
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import stay, survey
from webhook.placement.pod_requests import DEVICES, requests
from webhook.placement.runtime_class import deciding_plugins, tolerating, unread_class
from webhook.placement.shapes import as_object, objects_in

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node, Survey
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Toleration

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# Volumes whose claims may be bound to a node, a zone or a limited number on each node.
_CLAIMS: Final = ("persistentVolumeClaim", "ephemeral")


class Surveys(NamedTuple):
    """The nodes that admit the pod as it came, and with the patch; None if there is none.

    `on_demand`: if none admits it in the end, the autoscaled classes that could make one.
    `unread`: the RuntimeClass of the pod as it would be; it decides, and is not read;
    `unread_before`: the same of the pod as it came.
    `plugins`, `plugins_before`: plugins that decide by their tolerations, and may run or not;
    `not_judged`: what of the pod as it would be also decides about nodes, and nobody was asked;
    `differs`: it is not the same as of the pod as it came.
    `evicting`: of the nodes that admit it in the end, those that evict it, after so many seconds.
    """

    before: Survey
    after: Survey | None
    on_demand: tuple[str, ...] = ()
    unread: str = ""
    evicting: Mapping[str, int] = {}
    unread_before: str = ""
    plugins: tuple[str, ...] = ()
    plugins_before: tuple[str, ...] = ()
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
    def unknown(self) -> str:
        """Why the nodes are unknown; empty if they are known."""
        if self.unread:
            what = f"the nodeSelector, tolerations and overhead of RuntimeClass {self.unread}"
            return f"{what} are not read"
        if self.plugins:
            what = f"the API server may run the plugin {', '.join(self.plugins)}"
            return f"{what}, which adds tolerations"
        return ""

    @property
    def lacking(self) -> str:
        """What is not known and decides, as `without` is followed by it; empty for nothing."""
        return _lacking(self.unread, self.plugins)

    @property
    def lacking_before(self) -> str:
        """The same of the pod as it came."""
        return _lacking(self.unread_before, self.plugins_before)

    @property
    def last(self) -> Survey:
        """The nodes that admit the pod as it would be."""
        return self.after or self.before

    @property
    def none_left(self) -> bool:
        """Return True if it is known that no node admits the pod, and none can be made."""
        return not (self.last.admitted or self.on_demand or self.lacking)


def _lacking(unread: str, plugins: Sequence[str]) -> str:
    if unread:
        return f"RuntimeClass {unread}"
    return f"plugin {', '.join(plugins)}" if plugins else ""


def survey_pod(
    nodes: Sequence[Node],
    asked: Sequence[tuple[PodPlacement, Mapping[str, int]]],
    added: Mapping[str, Sequence[Toleration]],
    runtime_classes: Container[str],
    classes: Mapping[str, CapacityClass],
) -> Surveys:
    """Survey the nodes for a pod as it came, and as it would be unless it is the same.

    asked:           placement and requests of each
    added:           the tolerations that plugins add which may run or not
    runtime_classes: those that are known
    """
    before, *after = [survey(*each, nodes) for each in asked]
    final, _ = asked[-1]
    unread = [
        "" if pod.runtime_class_name in runtime_classes else unread_class(pod, requested, nodes)
        for pod, requested in asked
    ]
    plugins = [deciding_plugins(*each, nodes, added) if added else () for each in asked]
    found = Surveys(
        before,
        after[0] if after else None,
        unread=unread[-1],
        unread_before=unread[0],
        plugins=plugins[-1],
        plugins_before=plugins[0],
    )
    if found.last.admitted:
        names = frozenset(found.last.admitted)
        times = {each.name: stay(final, each) for each in nodes if each.name in names}
        evicting = {name: each for name, each in times.items() if each is not None}
        return found._replace(evicting=evicting)
    if not after or found.lacking:
        return found
    groups = NodeGroups(nodes)
    makers = tuple(on_demand.makers(final, classes.values(), groups))
    wide = tolerating(final, added)
    if not makers and added and [*on_demand.makers(wide, classes.values(), groups)]:
        return found._replace(plugins=tuple(added))
    return found._replace(on_demand=makers)


def not_judged(spec: JsonObject) -> Mapping[str, object]:
    """Return the fields of a v1.PodSpec, and requested devices, that also decide where it runs, and
    are not asked of a node that is judged by itself, with what they ask.

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
            each for each in spread if each.get("whenUnsatisfiable") == "DoNotSchedule"
        ],
        **{
            name: as_object(affinity.get(name)).get(_REQUIRED)
            for name in ("podAffinity", "podAntiAffinity")
        },
        "volumes": [
            each for each in objects_in(spec.get("volumes")) if any(map(each.get, _CLAIMS))
        ],
        "resourceClaims": spec.get("resourceClaims"),
    }
    devices = {name: count for name, count in requests(spec).items() if name.startswith(DEVICES)}
    return {name: each for name, each in fields.items() if each} | dict(sorted(devices.items()))
