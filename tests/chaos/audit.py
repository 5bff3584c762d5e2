"""What the API server's audit log says of creations of pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from webhook.sandbox.control_plane import ControlPlane

_FAILED_OPEN: Final = "failed-open.mutation.webhook.admission.k8s.io/"
_JUDGED: Final = "validation.policy.admission.k8s.io/validation_failure"


@dataclass(frozen=True, slots=True)
class Audited:
    """One creation of a pod: how it went, and whether the webhook was passed over."""

    name: str
    status: int
    message: str
    failed_open: bool
    judged: bool


def creations(plane: ControlPlane, namespace: str) -> dict[str, Audited]:
    """Creations of pods in the namespace, by name, rotated parts of the log included."""
    return {each.name: each for each in _read(plane, namespace)}


def _read(plane: ControlPlane, namespace: str) -> Iterator[Audited]:
    log = plane.layout.audit_log
    # The API server renames a log of 100 MB to audit-<time>.log, and begins again.
    for path in [*sorted(log.parent.glob("audit-*.log")), log]:
        if not path.exists():
            continue
        with path.open("rb") as lines:
            for line in lines:
                # The last line may be in the middle of being written.
                if line.endswith(b"\n") and b'"verb":"create"' in line:
                    event = orjson.loads(line)
                    about = event["objectRef"]
                    if about.get("namespace") == namespace and "subresource" not in about:
                        yield _audited(event)


def _audited(event: dict[str, object]) -> Audited:
    answer = event.get("responseStatus")
    status = answer if isinstance(answer, dict) else {}
    about = event["objectRef"]
    notes = event.get("annotations")
    keys = list(notes) if isinstance(notes, dict) else []
    return Audited(
        about.get("name", "") if isinstance(about, dict) else "",
        status.get("code", 0),
        status.get("message", ""),
        any(key.startswith(_FAILED_OPEN) for key in keys),
        _JUDGED in keys,
    )
