"""Run policy tests from files, and report the results as text and JSON."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.errors import InvalidDocuments, UnreadableInput
from webhook.judgement.set_judgement import load_sound
from webhook.placement.trace import WITHOUT_EFFECT, Entry
from webhook.policy_tests import load_tests, result
from webhook.policy_tests.runner import run_tests
from webhook.server.folder import is_test_file, read_folder
from webhook.shortening import count_text
from webhook.text.documents import as_finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.policy_set import PolicySet
    from webhook.policy_tests.load_tests import Document
    from webhook.policy_tests.result import Place, Verdict

_OK: Final = click.style("ok", fg="green")
_FAILED: Final = click.style("FAILED", fg="red", bold=True)


@dataclass(slots=True)
class FileReport:
    """One test file: what is wrong with it or with what it loads, and its tests' verdicts.

    left_out: how many tests have an error of their own, and were not run
    """

    file: str
    findings: list[object] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    left_out: int = 0

    @property
    def passed(self) -> bool:
        """Whether the file could be run, and every test in it passed."""
        return not self.findings and not self.failed

    @property
    def failed(self) -> int:
        """How many tests failed, or could not be run."""
        return sum(not verdict.passed for verdict in self.verdicts) + self.left_out

    @property
    def tests(self) -> int:
        """How many tests there are, as far as they could be read."""
        return len(self.verdicts) + self.left_out

    @contextmanager
    def noting_errors(self) -> Iterator[None]:
        """Keep the findings of documents with errors, instead of the exception."""
        try:
            yield
        except InvalidDocuments as error:
            self.findings += error.findings


@dataclass(frozen=True, slots=True)
class Report:
    """All test files by name, the number of policies, and those that no test reached."""

    files: Sequence[FileReport]
    policies: int
    unreached: Sequence[Place]

    @property
    def passed(self) -> bool:
        """Whether everything passed."""
        return all(report.passed for report in self.files)


def run(top: Path, instead: Mapping[str, bytes] | None = None) -> Report:
    """Run every test file at `top`; over these policies by place, if they are given.

    Raises UnreadableInput if a file or folder cannot be read.
    """
    reports = []
    sets: dict[tuple[str, ...], tuple[PolicySet, frozenset[Place]]] = {}
    loaded: set[Place] = set()
    reached: set[Place] = set()
    for file, content in read_folder(top, wanted=is_test_file).items():
        report = FileReport(file)
        reports.append(report)
        read = load_tests.read(file, content)
        report.findings += read.errors
        if not (read.documents or read.errors):
            report.findings.append(f"{file}: it has no test")
        for document in read.documents:
            report.left_out += document.left_out
            with report.noting_errors():
                files = _policy_files(document) if instead is None else instead
                if (key := tuple(sorted(files))) not in sets:
                    sets[key] = load_sound(files), result.policies_in(files)
                policies, places = sets[key]
                verdicts = run_tests(document, policies)
                report.verdicts += verdicts
                loaded |= places
                reached |= result.reached(places, verdicts)
    if instead is None and top.is_dir():
        loaded |= result.policies_in(read_folder(os.path.normpath(top)))
    return Report(reports, len(loaded), sorted(loaded - reached))


def _policy_files(document: Document) -> Mapping[str, bytes]:
    files: dict[str, bytes] = {}
    beside = Path(document.file).parent
    for at, path in enumerate(beside / policy for policy in document.model.policies):
        try:
            # One file has one name, however a test comes to it.
            files |= read_folder(os.path.normpath(path))
        except UnreadableInput as error:
            raise InvalidDocuments(
                [document.finding(("policies", at), problem) for problem in error.problems]
            ) from error
    return files


def lines(report: Report, *, verbose: bool) -> Iterator[str]:
    """Yield the report, line by line; with `verbose` the tests that passed too."""
    for file in report.files:
        yield from _file(file, verbose=verbose)
    yield from _summary(report)


def _file(report: FileReport, *, verbose: bool) -> Iterator[str]:
    if report.passed:
        yield f"{_OK}      {report.file}  {count_text(report.tests, 'test')}"
    else:
        failed = f"{report.failed} of {count_text(report.tests, 'test')} failed"
        what = failed if report.verdicts else "cannot run"
        yield f"{_FAILED}  {report.file}  {what}"
    yield from (f"    {finding}" for finding in report.findings)
    for verdict in report.verdicts:
        if not verdict.passed:
            yield from _failed(verdict)
        elif verbose:
            without = {entry.policy for entry in verdict.trace if entry.outcome in WITHOUT_EFFECT}
            policies = [f"{n} (not in full)" if n in without else n for n in verdict.policies]
            took_part = ", ".join(policies) or "no enforced policy"
            audited = f"; under Audit: {', '.join(verdict.audited)}" if verdict.audited else ""
            yield f"    {_OK}  {verdict.name}  ({verdict.result}; {took_part}{audited})"


def _failed(verdict: Verdict) -> Iterator[str]:
    yield f"    {_FAILED}  {verdict.file}:{verdict.line}: {verdict.name}"
    for failure in verdict.failures:
        yield f"        {failure.field}"
        yield f"            expected  {failure.expected}"
        yield f"            actual    {failure.actual}"
        yield from (f"            {line}" for line in failure.because)
    for number, entry in enumerate(relevant(verdict)):
        if not number:
            yield "        why"
        who = f"policy {entry.policy} ({entry.part})" if entry.policy else "the pod"
        yield f"            {entry.field}: {entry.outcome}, {who}: {entry.reason}"


# Fields about nodes, which can cause a wrong runsOn.
_OF_NODES = ("nodeSelector", "affinity", "tolerations", "capacity", "annotations[")
# Fields of the whole decision: every line of the trace may be the cause.
_OF_ALL = ("result", "reason", "warnings")


def relevant(verdict: Verdict) -> list[Entry]:
    """Return the entries of the trace about the failures."""
    starts: tuple[str, ...] = ()
    for failure in verdict.failures:
        if failure.field in _OF_ALL:
            return list(verdict.trace)
        of_nodes = failure.field in ("runsOn", *_OF_NODES)
        starts += _OF_NODES if of_nodes else (failure.field,)
    return [entry for entry in verdict.trace if entry.field.startswith(starts)]


def _summary(report: Report) -> Iterator[str]:
    tests = sum(file.tests for file in report.files)
    failed = sum(file.failed for file in report.files)
    broken = sum(bool(file.findings) and not file.verdicts for file in report.files)
    yield ""
    counts = [
        count_text(tests, "test"),
        f"{tests - failed} passed",
        f"{failed} failed",
    ]
    if broken:
        counts.append(f"{count_text(broken, 'file')} could not be run")
    yield ", ".join(counts)
    reached = report.policies - len(report.unreached)
    yield f"{reached} of {count_text(report.policies, 'policy')} reached"
    if report.unreached:
        yield "No test reached:"
        yield from (f"    {place.policy}  ({place.file})" for place in report.unreached)


def document(report: Report) -> dict[str, Any]:
    """Return the report as JSON."""
    return {
        "passed": report.passed,
        "files": [_file_document(file) for file in report.files],
        "policies": report.policies,
        "unreached": [place._asdict() for place in report.unreached],
    }


def _file_document(report: FileReport) -> dict[str, Any]:
    return {
        "file": report.file,
        "passed": report.passed,
        "findings": [*map(as_finding, report.findings)],
        "notRun": report.left_out,
        "tests": [
            {
                "name": verdict.name,
                "line": verdict.line,
                "passed": verdict.passed,
                "result": verdict.result,
                "policies": list(verdict.policies),
                "audited": list(verdict.audited),
                "failures": [
                    {
                        "field": failure.field,
                        "expected": failure.expected,
                        "seen": failure.actual,
                        "because": list(failure.because),
                    }
                    for failure in verdict.failures
                ],
                "trace": [entry._asdict() for entry in verdict.trace],
            }
            for verdict in report.verdicts
        ],
    }
