"""What of a pod decides where it runs, and is not asked of a node that is judged by itself.

Source: k8s.io/kubernetes v1.36, the scheduler's plugins podtopologyspread, interpodaffinity,
volumebinding, volumezone, nodevolumelimits and dynamicresources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement.pod_requests import DEVICES, requests
from webhook.placement.shapes import as_object, objects_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.shapes import JsonObject

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# Volumes whose claims may be bound to a node, a zone or a limited number on each node.
_CLAIMS: Final = ("persistentVolumeClaim", "ephemeral")


def not_judged(spec: JsonObject) -> Sequence[str]:
    """Return the fields of a v1.PodSpec, and requested devices, of which nobody was asked.

    None for a bound pod, which no scheduler judges.
    """
    if spec.get("nodeName"):
        return ()
    affinity = as_object(spec.get("affinity"))
    spread = objects_in(spec.get("topologySpreadConstraints"))
    fields = {
        "topologySpreadConstraints": any(
            each.get("whenUnsatisfiable") == "DoNotSchedule" for each in spread
        ),
        **{
            name: as_object(affinity.get(name)).get(_REQUIRED)
            for name in ("podAffinity", "podAntiAffinity")
        },
        "volumes": any(
            each.get(kind) for each in objects_in(spec.get("volumes")) for kind in _CLAIMS
        ),
        "resourceClaims": spec.get("resourceClaims"),
    }
    devices = sorted(name for name in requests(spec) if name.startswith(DEVICES))
    return (*(name for name, given in fields.items() if given), *devices)
