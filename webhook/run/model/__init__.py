"""The models of the Run."""

from webhook.crd.conditions import Condition
from webhook.run.model.replica import Environment, IndexSpec, ReplicaSpec, Resources
from webhook.run.model.run_checks import DEFAULT_ROLE, SERVING
from webhook.run.model.spec import Port, Run, RunMetadata, RunSpec
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
