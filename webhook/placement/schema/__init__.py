"""The models of placement in documents: camelCase outside, snake_case inside.

`model_dump(by_alias=True, exclude_none=True)` of any part gives the JSON that goes into a pod.
"""

from webhook.placement.schema.placement import (
    CapacitySetting,
    Defaults,
    PlacementModel,
    PlacementSettings,
)
from webhook.placement.schema.scheduling import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
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
