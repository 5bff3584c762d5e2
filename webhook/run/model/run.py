"""The Run: the object that the API server keeps."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from webhook.placement.schema.syntax import AnnotationKey, LabelKey, LabelValue, ServiceName
from webhook.run.model.checks import name_problems
from webhook.run.model.spec import RunSpec
from webhook.run.model.status import RunStatus
from webhook.strict import Problem, Strict


class RunMetadata(Strict):
    """The name of a run, and what the API server adds."""

    name: ServiceName = Field(
        description="The name, which the run's Service has too. Pods are called after it, such "
        "as mnist-worker-0, in at most 63 characters."
    )
    generate_name: Any = Field(default=None, description="What the API server made the name from.")
    namespace: str = Field(default="default", description="The namespace of the run's pods.")
    labels: dict[LabelKey, LabelValue] | None = Field(
        default=None, description="Labels of the Run itself; its pods get those of the template."
    )
    annotations: dict[AnnotationKey, str] | None = Field(
        default=None, description="Annotations of the Run itself."
    )
    uid: str = Field(default="", description="Set by the API server.")
    resource_version: str = Field(default="", description="Set by the API server.")
    generation: int = Field(default=1, description="Set by the API server.")
    creation_timestamp: str | None = Field(default=None, description="Set by the API server.")
    deletion_timestamp: str | None = Field(default=None, description="Set by the API server.")
    deletion_grace_period_seconds: Any = Field(default=None, description="Set by the API server.")
    finalizers: Any = Field(default=None, description="For controllers of the API server.")
    owner_references: Any = Field(default=None, description="For controllers of the API server.")
    managed_fields: Any = Field(default=None, description="Set by the API server.")
    self_link: Any = Field(default=None, description="Set by old API servers.")


class Run(Strict):
    """A run of machine-learning work: one pod, or the replicas of distributed training."""

    api_version: Literal["fairlead.dev/v1alpha1"] = Field(description="The version of this form.")
    kind: Literal["Run"] = Field(description="The kind of this document.")
    metadata: RunMetadata = Field(description="The run's name.")
    spec: RunSpec = Field(description="What the run is to be.")
    status: RunStatus = Field(default=RunStatus(), description="Set by Fairlead.")

    @property
    def name(self) -> str:
        """The run's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The run's namespace."""
        return self.metadata.namespace

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """The names of the pods are hostnames too."""
        yield from name_problems(given)

    def pod_name(self, role: str, index: int) -> str:
        """The name of one replica's pod."""
        return f"{self.name}-{role}-{index}"
