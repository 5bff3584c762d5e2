"""Validate writes of policy objects as changes of the whole set.

An error that existed before the write does not reject it. So a broken set can be fixed object by
object, in any order.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook import names
from webhook.evaluation.plugins import inputs_of
from webhook.judgement.set_judgement import Objects, placed
from webhook.judgement.together.warnings import OF_A_WRITE, Memory, of_classes, of_policy
from webhook.policy import exceptions, field_releases
from webhook.policy.added_sources import marks_of, ship_already
from webhook.policy.feasibility import feasibility
from webhook.policy.findings import FAULTS, Kind, condensed
from webhook.policy.load import UNKNOWN_CLASS, judge_documents
from webhook.policy.model import CapacityClass as CapacityClassDocument
from webhook.policy.model import PlacementPolicy
from webhook.policy.policy_set import PolicySet
from webhook.policy.refused_pods import missing_classes
from webhook.policy.status_model import CALLED
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.evaluation.plugins import PluginInputs
    from webhook.judgement.together.warnings import Prepared
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Finding
    from webhook.policy.policy_documents import Document

_NAMED: Final = 3
_MAX_ERRORS: Final = 20
_MOST_USERS: Final = 5
_INDEX: Final = re.compile(r"\[\d+\]")


class Write(NamedTuple):
    """A write. `place` is resource and name, as in `placementpolicies/spot`.

    old: the object's text as it is stored, None if it is created
    new: its text as it shall be, None if it is deleted
    """

    place: str
    old: bytes | None
    new: bytes | None

    @property
    def changes_nothing(self) -> bool:
        """Whether the set does not change: labels and finalizers of an object are not part of
        it."""
        if self.old is None or self.new is None:
            return self.old is self.new
        return bool(content(self.old) == content(self.new))

    def before(self, objects: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return all objects without the write, whether or not it is already among them."""
        return _with_object(objects, self.place, self.old)

    def after(self, objects: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return all objects with the write."""
        return _with_object(objects, self.place, self.new)


class Judgement(NamedTuple):
    """Reasons to reject the write, if any, and warnings for its author; a line for each."""

    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def content(text: bytes) -> Any:
    """Return the content of an object, without metadata and status."""
    content: dict[str, Any] = orjson.loads(text)
    return {key: value for key, value in content.items() if key not in ("metadata", "status")}


def called(place: str) -> str:
    """Return the name of an object in messages: `policy 'spot'`.

    >>> called("capacityclasses/spot")
    "class 'spot'"
    """
    resource, _, name = place.partition("/")
    return f"{CALLED.get(resource, resource)} {name!r}"


def _with_object(objects: Mapping[str, bytes], place: str, text: bytes | None) -> dict[str, bytes]:
    result = dict(objects)
    result.pop(place, None)
    return result if text is None else {**result, place: text}


class _Set(NamedTuple):
    """The set without a write, or with it. `others` are the documents that are no policies."""

    objects: Mapping[str, bytes]
    documents: Sequence[Document]
    classes: Mapping[str, CapacityClass]
    findings: Sequence[Finding]
    ready: Prepared
    others: Sequence[Document]

    def written(self, write: Write) -> Sequence[Document]:
        """Return the document of the object, if it is in the set and has no errors."""
        at = bisect_left(self.documents, write.place, key=attrgetter("file"))
        return [
            document for document in self.documents[at : at + 1] if document.file == write.place
        ]


class Judge:
    """Judges one write after the other. `reader` may be shared with a compiler of the same objects.

    It refuses fields that the release `rollback_to` does not read.

    Not for several threads at once.
    """

    def __init__(self, reader: Objects | None = None, rollback_to: str = names.ROLLBACK_TO) -> None:
        self._reader = Objects() if reader is None else reader
        self._rollback_to = rollback_to
        self._memory = Memory()
        # Most writes find the set that the write before left, or found if it was rejected.
        self._last: tuple[_Set, ...] = ()

    def judge(
        self,
        objects: Mapping[str, bytes],
        write: Write,
        *,
        nodes: Sequence[Node] | None = None,
        classes: Mapping[str, Mapping[str, JsonObject]] | None = None,
        now: datetime | None = None,
    ) -> Judgement:
        """Return the judgement of a write to objects that are given as JSON text, by resource and
        name.

        `nodes`, and `classes` by kind and name, are the cluster's at this moment, None if they are
        not known: they may change, so findings about them are warnings. Without `now`, there are
        no findings that depend on the time.
        """
        if write.changes_nothing:
            return Judgement()
        inputs = inputs_of(classes)
        before, after = (
            self._set(contents, now, inputs)
            for contents in (write.before(objects), write.after(objects))
        )
        findings = added(after.findings, before.findings)
        findings += added(
            *(
                field_releases.findings(judged.written(write), self._rollback_to)
                for judged in (after, before)
            )
        )
        errors = [finding for finding in findings if finding.severity == "error"]
        if not errors:
            # With errors in a document, findings about other policies may be wrong.
            together = _together(write, before, after, nodes)
            errors = [finding for finding in together if finding.severity == "error"]
            findings += together
        if errors:
            return Judgement(refusals=_refusals(write, errors))
        if classes:
            findings += added(
                _of_classes(write, after, classes), _of_classes(write, before, classes)
            )
        if nodes:
            findings += added(_of_nodes(write, after, nodes), _of_nodes(write, before, nodes))
        lines = _lines(write, condensed(findings, same_words=False))
        return Judgement(warnings=(*lines, *_of_deleted_source(write, before)))

    def _set(
        self,
        objects: Mapping[str, bytes],
        now: datetime | None,
        inputs: PluginInputs,
    ) -> _Set:
        judged_set = next(
            (judged_set for judged_set in self._last if judged_set.objects == objects), None
        )
        if judged_set is None:
            read = self._reader.documents(objects)
            classes, findings = judge_documents(read)
            ready = self._memory.prepare(read.documents, classes, inputs)
            others = [
                document
                for document in read.documents
                if not isinstance(document.model, PlacementPolicy)
            ]
            findings += ship_already(others)
            judged_set = _Set(objects, read.documents, classes, findings, ready, others)
        self._last = (*self._last[-1:], judged_set)
        judged_set = judged_set._replace(ready=judged_set.ready._replace(inputs=inputs))
        if now is None:
            return judged_set
        of_time = exceptions.of_time(judged_set.others, now)
        return judged_set._replace(findings=[*judged_set.findings, *of_time])


def _together(
    write: Write, before: _Set, after: _Set, nodes: Sequence[Node] | None
) -> list[Finding]:
    """Return findings about policies with each other after the write.

    Those that depend on the nodes are warnings, because nodes may change.
    """
    resource, _, name = write.place.partition("/")
    if write.new is None:
        return []
    if resource == names.PLACEMENT_POLICIES:
        findings = added(
            of_policy(after.ready, name, nodes, OF_A_WRITE),
            of_policy(before.ready, name, nodes, OF_A_WRITE),
        )
        return [
            replace(finding, severity="warning") if finding.kind is Kind.NO_NODE else finding
            for finding in findings
        ]
    if resource == names.CAPACITY_CLASSES:
        classes = {name, *_complements(name, after.others)}
        return added(
            of_classes(after.ready, classes, OF_A_WRITE),
            of_classes(before.ready, classes, OF_A_WRITE),
        )
    return []


def _of_classes(
    write: Write, judged_set: _Set, classes: Mapping[str, Collection[str]]
) -> list[Finding]:
    missing = missing_classes(judged_set.written(write), classes)
    return [replace(finding, severity="warning") for finding in missing]


def _of_nodes(write: Write, judged_set: _Set, nodes: Sequence[Node]) -> list[Finding]:
    """Return findings about the written object with these nodes: warnings, because nodes may
    change.
    """
    written = judged_set.written(write)
    models = [document.model for document in written if isinstance(document.model, PlacementPolicy)]
    # Without a policy that names an unknown class.
    ready = judged_set.ready.by_document
    policies = PolicySet([model for model in models if model.name in ready], judged_set.classes, "")
    inputs = judged_set.ready.inputs
    concerns = feasibility(policies, nodes, inputs.runtime_classes, inputs.devices).concerns
    named = {(document.model.kind, document.model.name) for document in written}
    findings = placed(
        (concern for concern in concerns if (concern.kind, concern.name) in named), written
    )
    return [replace(finding, severity="warning") for finding in findings]


def _of_deleted_source(write: Write, before: _Set) -> Iterator[str]:
    """Yield that the pods of a source are not placed any more: its entry knows nothing of it."""
    if write.new is not None:
        return
    for document in before.written(write):
        if document.model.kind == names.SOURCE_KIND:
            marks = [*map(str, marks_of(document.model))]
            if marks:
                named = first_few(marks, _NAMED)
                yield (
                    f"{called(write.place)}: new pods with {named} are not placed from now on; if "
                    "the webhook configuration has an entry for them, take it away too: `fairlead "
                    "doctor --check interception` says how"
                )


def _complements(name: str, documents: Sequence[Document]) -> Iterator[str]:
    for document in documents:
        model = document.model
        if isinstance(model, CapacityClassDocument) and model.spec.complement_of == name:
            yield model.name


def _lines(write: Write, warnings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each warning; one for all objects with the same warning."""
    files: dict[tuple[str, str], list[str]] = {}
    for warning in warnings:
        files.setdefault((warning.path, warning.message), []).append(warning.file)
    for (path, message), said_of in files.items():
        others = [called(file) for file in said_of if file != write.place]
        if len(others) < len(said_of):
            yield f"{called(write.place)}: {path}: {message}"
        if others:
            yield f"{first_few(others, _NAMED)}: {path}: {message}"


def _refusals(write: Write, errors: Sequence[Finding]) -> tuple[str, ...]:
    """Return a line for each error; one for all objects that name a deleted class."""
    resource, _, name = write.place.partition("/")
    gone = write.new is None and resource == names.CAPACITY_CLASSES
    orphans = [
        error
        for error in errors
        if gone and error.about == name and error.message.startswith(UNKNOWN_CLASS)
    ]
    result = [_still_named(name, orphans)] if orphans else []
    result += [_line(write, error) for error in errors if error not in orphans]
    more = len(result) - _MAX_ERRORS
    return (*result[:_MAX_ERRORS], f"and {more} more errors") if more > 0 else tuple(result)


def _still_named(name: str, orphans: Sequence[Finding]) -> str:
    who = list(dict.fromkeys(called(orphan.file) for orphan in orphans))
    first = orphans[0]
    return (
        f"class {name!r} is used by {first_few(who, _MOST_USERS)} ({first.file}: "
        f"{first.path}): change or delete {'that' if len(who) == 1 else 'those'} first"
    )


def _line(write: Write, error: Finding) -> str:
    where = "" if error.file == write.place else f"{called(error.file)}: "
    return f"{where}{error.path}: {error.message}" if error.path else f"{where}{error.message}"


def added(after: Sequence[Finding], before: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are new, not only moved or worded differently.

    That not all was checked is always reported. A rejection by several policies is not new if some
    of them rejected the pods before.
    """
    before = list(before)
    identities = {_identity(finding) for finding in before}
    rejected = [set(finding.about.split()) for finding in before if _rejects_all(finding)]
    return [
        finding
        for finding in after
        if finding.kind is Kind.NOT_CHECKED
        or not (
            _identity(finding) in identities
            or (
                _rejects_all(finding)
                and any(some <= set(finding.about.split()) for some in rejected)
            )
        )
    ]


def _rejects_all(finding: Finding) -> bool:
    return finding.is_fault and finding.kind is Kind.EVERY_POD_REJECTED


def _identity(finding: Finding) -> tuple[str, str, str, str]:
    if finding.kind in FAULTS:
        # It may be reported at another of the policies that cause it.
        return finding.severity, finding.kind, finding.about, ""
    # When an item is removed, all that follow move up.
    path = _INDEX.sub("[]", finding.path)
    return finding.severity, finding.file, path, finding.about or finding.message
