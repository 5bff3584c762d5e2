"""The placement schema of documents, typed and strict: camelCase outside, snake_case inside.

`model_dump(by_alias=True, exclude_none=True)` of any part gives the JSON that goes into a pod.
"""

from webhook.placement.schema.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    WeightedPodAffinityTerm,
)
from webhook.placement.schema.placement import (
    CapacitySetting,
    Defaults,
    PlacementModel,
    PlacementSettings,
)
from webhook.placement.schema.security import (
    AppArmorProfile,
    PodSecurityContext,
    SeccompProfile,
    SELinuxOptions,
    Sysctl,
    WindowsSecurityContextOptions,
)
from webhook.placement.schema.selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeFieldRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from webhook.placement.schema.spread import TopologySpreadConstraint
from webhook.placement.schema.taints import Taint, Toleration
from webhook.strict import Strict

__all__ = [
    "Affinity",
    "AppArmorProfile",
    "CapacitySetting",
    "Defaults",
    "LabelSelector",
    "LabelSelectorRequirement",
    "NodeAffinity",
    "NodeFieldRequirement",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "PlacementModel",
    "PlacementSettings",
    "PodAffinity",
    "PodAffinityTerm",
    "PodSecurityContext",
    "PreferredSchedulingTerm",
    "SELinuxOptions",
    "SeccompProfile",
    "Strict",
    "Sysctl",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "WeightedPodAffinityTerm",
    "WindowsSecurityContextOptions",
]
