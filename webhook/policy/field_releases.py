"""The release that first reads each field which the first release did not have.

An older program may be asked again after a rollback, and an older definition may drop a field: a
condition that vanishes widens its policy. So a field is stored only if the release that a cluster
may be rolled back to reads it (decision 137).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.policy.conditions import is_glob
from webhook.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.policy.findings import Finding, Path
    from webhook.policy.policy_documents import Document, PolicyDocument


def _always(_: Any) -> bool:
    return True


def _has_glob(listed: list[str]) -> bool:
    return any(map(is_glob, listed))


class FieldRelease(NamedTuple):
    """A field of a model, by their names in documents and code, and the first release that reads
    it. By names: the models of all kinds are not imported for one.

    `concerns` tells whether it is about a value; `form` describes such values for people.
    """

    model: str
    field: str
    release: str
    concerns: Callable[[Any], bool] = _always
    form: str = ""


FIELD_RELEASES: Final = (
    FieldRelease("PolicyPlacement", "split", "0.2.0"),
    FieldRelease("PolicyPlacement", "nodeSelectorFrom", "0.2.0"),
    FieldRelease("PolicyPlacement", "tolerationsFrom", "0.2.0"),
    FieldRelease("PolicyCapacity", "fallback", "0.2.0"),
    FieldRelease("Requirements", "allowedTolerations", "0.2.0"),
    FieldRelease("Requirements", "values", "0.2.0"),
    FieldRelease("Match", "resources", "0.2.0", _has_glob, "with `*` or `?`"),
    FieldRelease("Match", "annotationSelector", "0.2.0"),
    FieldRelease("Match", "requests", "0.2.0"),
    FieldRelease("Match", "resourceClaims", "0.2.0"),
    FieldRelease("CapacityClassSpec", "maxTerminationGracePeriodSeconds", "0.2.0"),
    FieldRelease("CapacityClassSpec", "lostAfter", "0.2.0"),
    FieldRelease("CapacityClassSpec", "unhealthy", "0.2.0"),
    FieldRelease("CapacityClassSpec", "relativePrice", "0.2.0"),
    FieldRelease("Identity", "replicas", "0.2.0"),
    FieldRelease("Count", "least", "0.2.0"),
    FieldRelease("Count", "most", "0.2.0"),
)


def later_fields(document: PolicyDocument, release: str) -> Iterator[tuple[Path, FieldRelease]]:
    """Yield the fields of a document that a release does not read, each with its path."""
    at = names.RELEASES.index(release)
    later = [row for row in FIELD_RELEASES if names.RELEASES.index(row.release) > at]
    return _among(later, document.spec, ("spec",))


def _among(
    rows: list[FieldRelease], node: object, path: Path
) -> Iterator[tuple[Path, FieldRelease]]:
    if isinstance(node, list | dict):
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            yield from _among(rows, item, (*path, key))
    if not isinstance(node, Strict):
        return
    models = {model.__name__ for model in type(node).__mro__}
    for name, field in type(node).model_fields.items():
        value, outer = getattr(node, name), field.serialization_alias or name
        if name not in node.model_fields_set or value is None:
            continue
        for row in rows:
            if row.field == outer and row.model in models and row.concerns(value):
                yield (*path, outer), row
        yield from _among(rows, value, (*path, outer))


def findings(documents: Iterable[Document], release: str) -> list[Finding]:
    """Return the fields of documents that a release does not read, as errors."""
    why = (
        f"release {release}, to which this cluster may be rolled back, does not read it, and could "
        f"apply the object without it; remove it, or end the rollback with --rollback-to "
        f"{names.RELEASES[-1]} of the webhook"
    )
    return [
        document.finding(path, why, at_key=True)
        for document in documents
        for path, _ in later_fields(document.model, release)
    ]
