"""The exceptions that Fairlead raises on purpose. Any other exception is a bug.

FairleadError
├── InvalidDocuments      policy files that cannot be read as such: carries every finding
├── InvalidReview         a request body that is not an AdmissionReview of a pod: answered with 400
├── InvalidPod            a pod whose placement fields have invalid types: carries the field
├── UnreadableText        text that others wrote into an object, and that its reader cannot take
├── InvalidRun            a Run from which no pods can be created: carries every finding
├── UnreadableInput       a file or folder that was named cannot be read: carries every problem
├── ServingError          an address or a certificate that cannot be used to serve
├── NotSynced             what a decision needs is not known yet: answered with 503
├── NotLeading            a write was not sent, because this process does not hold the lease
├── ClusterError          the API server could not be reached, or refused
│   └── InvalidName       nothing can have the name: no request was sent
├── WrongUsage            settings that exclude or require each other: commands exit with 2
├── NoSuch                what was named does not exist: commands exit with 2
├── TimeOver              what was waited for did not come in time: commands exit with 3
├── NotExported           policies that cannot be expressed without the webhook: carries every one
├── InstallationError     an installation could not be created, changed or removed
└── SandboxError          the local control plane could not be built, started or stopped
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class FairleadError(Exception):
    """The root. Its text is meant for a person: where, what, and the cure."""


class WrongUsage(FairleadError):
    """Settings that exclude or require each other, or name what is not there."""


class NoSuch(FairleadError):
    """What was named, such as an object or a policy, does not exist."""


class TimeOver(FairleadError):
    """What was waited for did not come in time."""


class InvalidDocuments(FairleadError):
    """Policy documents with errors. `findings` are printable lines, ordered by place."""

    def __init__(self, findings: Sequence[object]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


class InvalidReview(FairleadError):
    """A body that is not an admission.k8s.io/v1 AdmissionReview of a pod."""


class InvalidPod(FairleadError):
    """A pod with a field of the wrong type. `field` is its path: spec.tolerations[0]."""

    def __init__(self, field: str, wanted: str, value: object) -> None:
        self.field = cut(field, 200)
        super().__init__(f"{self.field}: want {wanted}, not {type(value).__name__}")


class UnreadableText(FairleadError):
    """Text that others wrote into an object, such as an annotation, is not what it has to be."""


class _Problems(FairleadError):
    """Several problems at once: `problems` are lines."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class InvalidRun(_Problems):
    """A Run of which no pods can be made. `problems` are lines: field path, what is wrong, cure."""


class UnreadableInput(_Problems):
    """A file or folder that was named cannot be read. `problems` are lines, each with its path."""


class ServingError(FairleadError):
    """An address cannot be listened on, or a certificate cannot be served with."""


class NotSynced(FairleadError):
    """A decision needs what the caches do not hold yet, and asking live failed too."""


class NotLeading(FairleadError):
    """A write was held back, for another may hold the lease by now. Nothing was sent."""


class ClusterError(FairleadError):
    """The API server could not be reached, or answered with an error.

    `status` is the HTTP status, or the code of a Status object in a watch; None if no answer came.
    `reason` is the Status object's (NotFound, AlreadyExists, Conflict, Expired, ...), or Timeout if
    the server sent nothing for too long, or "".
    `retry_after` is the number of seconds to wait, as the server requested, or None.
    `why` is the reason without what was asked for: a sentence of `webhook.kube.failure_text`, the
    API server's own words, or all of the text.
    `words` is the Status object's own message, as programs compare it; or "".
    `answer` is the answer's JSON object, if it is no Status; or None.
    `warnings` are the headers with the API server's warnings, also those of webhooks.
    `position` is where a list that expired may continue, from the Status object's metadata; or "".
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str = "",
        retry_after: float | None = None,
        why: str = "",
        words: str = "",
        warnings: Sequence[str] = (),
        position: str = "",
        answer: Mapping[str, Any] | None = None,
    ) -> None:
        self.answer = answer
        self.why = why or words or message
        self.words = words
        self.warnings = warnings
        self.position = position
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(message)


class InvalidName(ClusterError):
    """A name that no object can have, so that there is none. No request was sent.

    The status is that of an object which does not exist: who reads the object of a name that others
    wrote needs no second case.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, status=404, reason="InvalidName")


class PassOver:
    """Ends its block without an error if the API server answers with one of these statuses.

    `status` is that answer's, or None.
    """

    def __init__(self, *statuses: int) -> None:
        self._statuses = statuses
        self.status: int | None = None

    def __enter__(self) -> PassOver:
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, ClusterError) or error.status not in self._statuses:
            return False
        self.status = error.status
        return True


class NotExported(_Problems):
    """A policy set that admission policies cannot express. `problems`: where, why, cure."""


class InstallationError(FairleadError):
    """An installation differs from the request; the text has what is missing, and the cure."""


class SandboxError(FairleadError):
    """A request to the sandbox failed; the text says how to find out more."""
