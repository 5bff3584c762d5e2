"""Label selectors and node selector expressions."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field

from webhook.placement.label_values import (
    BARE_OPERATORS,
    LIST_OPERATORS,
    NUMBER_OPERATORS,
    int64,
)
from webhook.placement.schema.syntax import LabelKey, LabelValue, ObjectName
from webhook.strict import Problem, Strict, optional, quoted


class _Expression(Strict):
    """A requirement on one label, whose values depend on its operator."""

    key: LabelKey = Field(description="The label's key.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        operator, values = given.get("operator"), given.get("values")
        count = len(values) if isinstance(values, list) else 0
        if operator in LIST_OPERATORS and (values is None or values == []):
            yield Problem(("values",), f"{operator} needs one value or more")
        elif operator in BARE_OPERATORS and count:
            yield Problem(
                ("values",), f"{operator} takes no values; remove them, or use In or NotIn"
            )
        elif operator in NUMBER_OPERATORS:
            if values is None or (isinstance(values, list) and count != 1):
                yield Problem(("values",), f"{operator} needs exactly one value, not {count}")
            elif count and isinstance(values[0], str) and int64(values[0]) is None:
                yield Problem(
                    ("values", 0),
                    f"{operator} compares whole numbers of 64 bits; {quoted(values[0])} is none",
                )


class LabelSelectorRequirement(_Expression):
    """One expression on a label."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="How the label is compared with the values. NotIn and DoesNotExist also "
        "match if the label is missing."
    )
    values: list[LabelValue] | None = optional(
        "The values for In and NotIn, one or more; Exists and DoesNotExist take none."
    )


class LabelSelector(Strict):
    """Selects objects whose labels match all that is given. An empty selector selects all."""

    match_labels: dict[LabelKey, LabelValue] | None = optional(
        "Labels that must be present with exactly these values."
    )
    match_expressions: list[LabelSelectorRequirement] | None = optional(
        "Expressions, all of which must match."
    )

    @property
    def keys(self) -> list[str]:
        """The keys that it names."""
        return [*(self.match_labels or ()), *(item.key for item in self.match_expressions or ())]

    @property
    def is_empty(self) -> bool:
        return not self.match_labels and not self.match_expressions


class NodeSelectorRequirement(_Expression):
    """One expression on a label of a node."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        description="How the label is compared with the values. NotIn and DoesNotExist also "
        "match if the label is missing. Gt and Lt compare whole numbers."
    )
    values: list[LabelValue] | None = optional(
        "One value or more for In and NotIn, none for Exists and DoesNotExist, "
        'one whole number in quotes ("8") for Gt and Lt.'
    )


class NodeFieldRequirement(Strict):
    """One expression on a field of a node. Kubernetes allows only its name."""

    key: Literal["metadata.name"] = Field(description="The field: metadata.name, the node's name.")
    operator: Literal["In", "NotIn"] = Field(
        description="In: the node must have this name. NotIn: it must have another."
    )
    values: list[ObjectName] = Field(
        min_length=1, max_length=1, description="The node's name, exactly one."
    )


class NodeSelectorTerm(Strict):
    """Expressions on a node, all of which must match."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": ["matchExpressions"]}, {"required": ["matchFields"]}]
        },
    )

    match_expressions: list[NodeSelectorRequirement] | None = optional(
        "Expressions on the node's labels, all of which must match."
    )
    match_fields: list[NodeFieldRequirement] | None = optional(
        "Expressions on the node's fields, all of which must match."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Reject an empty term: required, it matches no node; preferred, it has no effect."""
        if not given.get("matchExpressions") and not given.get("matchFields"):
            yield Problem((), "the term has no expressions; give matchExpressions")
