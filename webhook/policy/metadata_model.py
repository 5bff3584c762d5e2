"""The metadata of a document that policies are written in."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from webhook.placement.schema.syntax import AnnotationKey, LabelKey, LabelValue, ObjectName
from webhook.strict import Strict


class Metadata(Strict):
    """The name of a document. What the API server adds to an object is accepted, and not read."""

    refused: ClassVar[Mapping[str, str]] = {
        "namespace": "policies and capacity classes hold for the whole cluster; remove it",
        "generateName": "give a name: policies of equal priority go by name",
    }

    name: ObjectName = Field(description="The name, unique among documents of this kind.")
    labels: dict[LabelKey, LabelValue] | None = Field(
        default=None, description="Labels of the document itself; they mean nothing here."
    )
    annotations: dict[AnnotationKey, str] | None = Field(
        default=None, description="Annotations of the document itself; they mean nothing here."
    )
    uid: Any = Field(default=None, description="Set by the API server.")
    resource_version: Any = Field(default=None, description="Set by the API server.")
    generation: Any = Field(default=None, description="Set by the API server.")
    creation_timestamp: Any = Field(default=None, description="Set by the API server.")
    deletion_timestamp: Any = Field(default=None, description="Set by the API server.")
    deletion_grace_period_seconds: Any = Field(default=None, description="Set by the API server.")
    finalizers: Any = Field(default=None, description="For controllers of the API server.")
    owner_references: Any = Field(default=None, description="For controllers of the API server.")
    managed_fields: Any = Field(default=None, description="Set by the API server.")
    self_link: Any = Field(default=None, description="Set by old API servers.")
