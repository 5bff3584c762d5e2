"""Rules that say in words which form a text has, where a pattern would be shown as it stands.

Of most texts in long lists the API server cannot afford one: those keep their pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd.rule import formed
from webhook.placement.schema.moments import IS_NO_MOMENT, MOMENT_PATTERN
from webhook.placement.schema.placement import Defaults, PlacementSettings
from webhook.placement.schema.syntax import (
    COUNTED_KEY_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_NAME,
    OBJECT_NAME_PATTERN,
    LabelKey,
    LabelValue,
    ObjectName,
)
from webhook.policy.exception_model import POLICY_NAME_PATTERN, REASON_PATTERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.crd.rule import Rule

_KEY: Final = formed(
    COUNTED_KEY_PATTERN,
    f"is no label key: give a name of 1 to {MAX_NAME} letters, digits, '-', '_' or '.', with a "
    "letter or a digit at both ends, perhaps after a DNS name and a slash",
)
_LABEL_VALUE: Final = formed(
    LABEL_VALUE_PATTERN,
    f"is no label value: give at most {MAX_NAME} letters, digits, '-', '_' or '.', with a letter "
    "or a digit at both ends",
)
_OBJECT_NAME: Final = formed(
    OBJECT_NAME_PATTERN,
    "is no object's name: give lower-case letters, digits, '-' or '.', with a letter or a digit "
    "at both ends of each part",
)
_POLICY_NAME: Final = formed(
    POLICY_NAME_PATTERN,
    "is no policy's name: give lower-case letters, digits, '-' or '.', or * alone for all policies",
)
_MOMENT: Final = formed(MOMENT_PATTERN, IS_NO_MOMENT)
_REASON: Final = formed(REASON_PATTERN, "is blank: say why these pods may pass")

FORMS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "ExceptionSpec.policies": (_POLICY_NAME,),
    "ExceptionSpec.until": (_MOMENT,),
    "ExceptionSpec.reason": (_REASON,),
    "CapacityClassSpec.complementOf": (_OBJECT_NAME,),
    "CapacitySetting.class": (_OBJECT_NAME,),
    "Toleration.key": (_KEY,),
    "TopologySpreadConstraint.topologyKey": (_KEY,),
    "PodAffinityTerm.topologyKey": (_KEY,),
    "Shape.labels": (_LABEL_VALUE,),
    **{
        f"{model.__name__}.{field.serialization_alias}": (rule,)
        for model in (Defaults, PlacementSettings)
        for field in model.model_fields.values()
        if field.serialization_alias in model.outer_names()
        for form, rule in ((dict[LabelKey, LabelValue], _LABEL_VALUE), (ObjectName, _OBJECT_NAME))
        if field.annotation == form | None
    },
}
