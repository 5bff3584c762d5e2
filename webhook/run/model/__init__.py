"""The Run's model, typed and strict; the CustomResourceDefinition is made from it."""

from webhook.crd.reported import Condition
from webhook.run.model.checks import DEFAULT_ROLE, SERVING
from webhook.run.model.environment import Environment
from webhook.run.model.replica import IndexSpec, ReplicaSpec, Resources
from webhook.run.model.run import Run, RunMetadata
from webhook.run.model.spec import Port, RunSpec
from webhook.run.model.status import (
    Incident,
    LastFailure,
    Recovering,
    RoleStatus,
    RunStatus,
)

__all__ = [
    "DEFAULT_ROLE",
    "SERVING",
    "Condition",
    "Environment",
    "Incident",
    "IndexSpec",
    "LastFailure",
    "Port",
    "Recovering",
    "ReplicaSpec",
    "Resources",
    "RoleStatus",
    "Run",
    "RunMetadata",
    "RunSpec",
    "RunStatus",
]
