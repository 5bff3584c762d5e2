"""Judges writes of a policy set's objects, as changes of the whole set.

What was wrong before, and is not made worse, refuses nothing: whoever has to mend a set can do it
object by object, in any order that makes it better.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.policy import exception_checks, feasibility
from webhook.policy.checks import UNKNOWN_CLASS
from webhook.policy.findings import FAULTS, Kind, condensed, first_few
from webhook.policy.load import judged
from webhook.policy.model import CapacityClass as CapacityClassDocument
from webhook.policy.objects import Objects
from webhook.policy.set_judgement import placed
from webhook.policy.together.nodeless import nodeless
from webhook.policy.together.warnings import Memory, of_classes, of_policy
from webhook.policy.written.write import Judgement, Write, called

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.policy.feasibility import Concern
    from webhook.policy.findings import Finding
    from webhook.policy.source import Document
    from webhook.policy.together.policy_view import Policy

_NAMED: Final = 3
# How often it is asked, while somebody waits, which nodes some policies leave.
_MOST_LOOKS: Final = 2_000
_MOST: Final = 20
_MOST_USERS: Final = 5
_INDEX: Final = re.compile(r"\[\d+\]")


class _Set(NamedTuple):
    objects: Mapping[str, bytes]
    documents: Sequence[Document]
    classes: Mapping[str, CapacityClass]
    findings: Sequence[Finding]
    policies: Sequence[Policy]


class Judge:
    """Judges one write after the other. `reader` may be shared with who compiles the same objects.

    Not for several threads at once.
    """

    def __init__(self, reader: Objects | None = None) -> None:
        self._reader = Objects() if reader is None else reader
        self._memory = Memory()
        # Most writes find the set as the one before has left it, or has found it if it was refused.
        self._last: tuple[_Set, ...] = ()

    def judge(
        self,
        objects: Mapping[str, bytes],
        write: Write,
        *,
        nodes: Sequence[Node] | None = None,
        now: datetime | None = None,
    ) -> Judgement:
        """The judgement of a write to objects that are given as JSON text, by resource and name.

        `nodes` are the cluster's at this moment, None if they are not known. Without `now` nothing
        is said of what depends on the time.
        """
        if write.changes_nothing:
            return Judgement()
        before = self._set(write.before(objects), now)
        after = self._set(write.after(objects), now)
        found = added(after.findings, before.findings)
        errors = [each for each in found if each.severity == "error"]
        if not errors:
            # What is wrong with a document may have policies beside it told wrongly.
            together = self._together(write, before, after)
            errors = [each for each in together if each.severity == "error"]
            found += together
        if errors:
            return Judgement(refusals=_refusals(write, errors))
        if nodes:
            found += added(_of_nodes(write, after, nodes), _of_nodes(write, before, nodes))
        return Judgement(warnings=tuple(_lines(write, condensed(found, same_words=False))))

    def _set(self, objects: Mapping[str, bytes], now: datetime | None) -> _Set:
        found = next((each for each in self._last if each.objects == objects), None)
        if found is None:
            read = self._reader.documents(objects)
            classes, findings = judged(read)
            policies = self._memory.policies(read.documents, classes)
            found = _Set(objects, read.documents, classes, findings, policies)
        self._last = (*self._last[-1:], found)
        if now is None:
            return found
        of_time = exception_checks.of_time(found.documents, now)
        return found._replace(findings=[*found.findings, *of_time])

    def _together(self, write: Write, before: _Set, after: _Set) -> list[Finding]:
        """What is to be said of policies beside each other since the write."""
        resource, _, name = write.place.partition("/")
        if write.new is None:
            return []
        if resource == names.PLACEMENT_POLICIES:
            return added(of_policy(after.policies, name), of_policy(before.policies, name))
        if resource == names.CAPACITY_CLASSES:
            classes = {name, *_complements(name, after.documents)}
            return added(of_classes(after.policies, classes), of_classes(before.policies, classes))
        return []


def _of_nodes(write: Write, of: _Set, nodes: Sequence[Node]) -> list[Finding]:
    """What is to be said of the object that is written, given the nodes: warnings, for they go."""
    name = write.place.partition("/")[2]
    document = next((each for each in of.documents if each.file == write.place), None)
    concerns: list[Concern] = []
    if document and isinstance(document.model, CapacityClassDocument) and name in of.classes:
        concerns += feasibility.of_class(of.classes[name], nodes)
    chosen = [each for each in of.policies if document and each.document is document]
    for each in chosen:
        settings = [said.setting for said in each.said]
        concerns += feasibility.of_policy(name, settings, of.classes.values(), nodes)
    concerns += nodeless(of.policies, chosen, of.classes, nodes, _MOST_LOOKS) if chosen else ()
    found = placed(concerns, of.documents)
    return [replace(each, severity="warning") for each in found]


def _complements(name: str, documents: Sequence[Document]) -> Iterator[str]:
    for document in documents:
        model = document.model
        if isinstance(model, CapacityClassDocument) and model.spec.complement_of == name:
            yield model.name


def _lines(write: Write, warnings: Sequence[Finding]) -> Iterator[str]:
    """A line for each warning; one for all objects of which the same is said."""
    files: dict[tuple[str, str], list[str]] = {}
    for each in warnings:
        files.setdefault((each.path, each.message), []).append(each.file)
    for (path, message), said_of in files.items():
        others = [called(file) for file in said_of if file != write.place]
        if len(others) < len(said_of):
            yield f"{called(write.place)}: {path}: {message}"
        if others:
            yield f"{first_few(others, _NAMED)}: {path}: {message}"


def _refusals(write: Write, errors: Sequence[Finding]) -> tuple[str, ...]:
    """A line for each error; of those who name a class that goes, one for all."""
    resource, _, name = write.place.partition("/")
    gone = write.new is None and resource == names.CAPACITY_CLASSES
    orphans = [each for each in errors if gone and _misses(each, name)]
    result = [_still_named(name, orphans)] if orphans else []
    result += [_line(write, each) for each in errors if each not in orphans]
    more = len(result) - _MOST
    return (*result[:_MOST], f"and {more} more errors") if more > 0 else tuple(result)


def _misses(error: Finding, name: str) -> bool:
    return error.about == name and error.message.startswith(UNKNOWN_CLASS)


def _still_named(name: str, orphans: Sequence[Finding]) -> str:
    who = list(dict.fromkeys(called(each.file) for each in orphans))
    first = orphans[0]
    return (
        f"class {name!r} is named by {first_few(who, _MOST_USERS)} ({first.file}: {first.path}): "
        f"change or delete {'that' if len(who) == 1 else 'those'} first"
    )


def _line(write: Write, error: Finding) -> str:
    where = "" if error.file == write.place else f"{called(error.file)}: "
    return f"{where}{error.path}: {error.message}" if error.path else f"{where}{error.message}"


def added(after: Sequence[Finding], before: Iterable[Finding]) -> list[Finding]:
    """The findings that were not there before: not those that moved, or say it in other words.

    That not all was checked is told each time. Pods that several policies reject were rejected
    before if some of the policies did it then.
    """
    before = list(before)
    known = {_identity(each) for each in before}
    rejected = [set(each.about.split()) for each in before if _rejects_all(each)]
    return [
        each
        for each in after
        if each.kind is Kind.NOT_CHECKED
        or not (
            _identity(each) in known
            or (_rejects_all(each) and any(some <= set(each.about.split()) for some in rejected))
        )
    ]


def _rejects_all(finding: Finding) -> bool:
    return finding.is_fault and finding.kind is Kind.EVERY_POD_REJECTED


def _identity(finding: Finding) -> tuple[str, str, str, str]:
    if finding.kind in FAULTS:
        # It may be told at another of the policies that have part in it.
        return finding.severity, finding.kind, finding.about, ""
    # An item that goes lets all that follow move up.
    path = _INDEX.sub("[]", finding.path)
    return finding.severity, finding.file, path, finding.about or finding.message
