"""The exceptions that Fairlead raises on purpose; anything else is a bug.

FairleadError
├── InvalidDocuments      policy files that cannot be read as such: carries every finding
├── InvalidReview         a request body that is no AdmissionReview of a pod: answered with 400
├── InvalidPod            a pod whose placement fields have no pod's shape: carries the field
├── NotSynced             what a decision needs is not known yet: answered with 503
├── ClusterError          the API server could not be reached, or refused
└── SandboxError          the local control plane could not be built, started or stopped
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class FairleadError(Exception):
    """The root. Its text is meant for a person: where, what, and the cure."""


class InvalidDocuments(FairleadError):
    """Policy documents with errors. `findings` are printable lines, ordered by place."""

    def __init__(self, findings: Sequence[object]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


class InvalidReview(FairleadError):
    """A body that is not an admission.k8s.io/v1 AdmissionReview of a pod."""


class InvalidPod(FairleadError):
    """A pod with a field of the wrong type. `field` is its path: spec.tolerations[0]."""

    def __init__(self, field: str, wanted: str, seen: object) -> None:
        self.field = field
        super().__init__(f"{field}: want {wanted}, not {type(seen).__name__}")


class NotSynced(FairleadError):
    """A decision needs what the caches do not hold yet, and asking live failed too."""


class ClusterError(FairleadError):
    """The API server could not be reached, or answered with an error."""


class SandboxError(FairleadError):
    """The sandbox could not do what was asked; the text says how to find out more."""
