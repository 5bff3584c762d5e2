"""The report of policy tests as text for people, and as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webhook.placement.trace import WITHOUT_EFFECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cli.policy_test_run import FileReport, Report
    from webhook.placement.trace import Entry
    from webhook.policy_tests.verdict import Failure, Verdict


def lines(report: Report, *, verbose: bool) -> Iterator[str]:
    """The report, line by line; with `verbose` the tests that passed too."""
    for file in report.files:
        yield from _file(file, verbose=verbose)
    yield from _summary(report)


def _file(report: FileReport, *, verbose: bool) -> Iterator[str]:
    failed = sum(not verdict.passed for verdict in report.verdicts)
    passed = len(report.verdicts) - failed
    if report.passed:
        yield f"{_ok('ok')}      {report.file}  {_tests(passed)}"
    else:
        what = f"{failed} of {_tests(passed + failed)} failed" if report.verdicts else "cannot run"
        yield f"{_bad('FAILED')}  {report.file}  {what}"
    yield from (f"    {finding}" for finding in report.findings)
    for verdict in report.verdicts:
        if not verdict.passed:
            yield from _failed(verdict)
        elif verbose:
            took_part = ", ".join(_policies(verdict)) or "no enforced policy"
            audited = f"; under Audit: {', '.join(verdict.audited)}" if verdict.audited else ""
            yield f"    {_ok('ok')}  {verdict.name}  ({verdict.result}; {took_part}{audited})"


def _policies(verdict: Verdict) -> Iterator[str]:
    """The enforced policies that took part; of one with settings without effect, that it is so."""
    unfulfilled = {each.policy for each in verdict.trace if each.outcome in WITHOUT_EFFECT}
    for name in verdict.policies:
        yield f"{name} (not in full)" if name in unfulfilled else name


def _failed(verdict: Verdict) -> Iterator[str]:
    yield f"    {_bad('FAILED')}  {verdict.file}:{verdict.line}: {verdict.name}"
    for failure in verdict.failures:
        yield f"        {failure.field}"
        yield f"            expected  {failure.expected}"
        yield f"            seen      {failure.seen}"
        yield from (f"            {line}" for line in failure.because)
    trace = [_entry(entry) for entry in relevant(verdict)]
    if trace:
        yield "        why"
        yield from (f"            {line}" for line in trace)


def _entry(entry: Entry) -> str:
    who = f"policy {entry.policy} ({entry.part})" if entry.policy else "the pod"
    return f"{entry.field}: {entry.outcome}, {who}: {entry.reason}"


# What decides about nodes, and so is behind every wrong runsOn.
_OF_NODES = ("nodeSelector", "affinity", "tolerations", "capacity", "annotations[")
# About the decision as a whole: every line may tell why.
_OF_ALL = ("result", "reason", "warnings")


def relevant(verdict: Verdict) -> list[Entry]:
    """The lines of the trace that concern what came out wrong."""
    starts: tuple[str, ...] = ()
    for failure in verdict.failures:
        if failure.field in _OF_ALL:
            return list(verdict.trace)
        of_nodes = failure.field in ("runsOn", *_OF_NODES)
        starts += _OF_NODES if of_nodes else (failure.field,)
    return [entry for entry in verdict.trace if entry.field.startswith(starts)]


def _summary(report: Report) -> Iterator[str]:
    verdicts = [verdict for file in report.files for verdict in file.verdicts]
    failed = sum(not verdict.passed for verdict in verdicts)
    broken = sum(bool(file.findings) for file in report.files)
    yield ""
    told = [_tests(len(verdicts)), f"{len(verdicts) - failed} passed", f"{failed} failed"]
    if broken:
        told.append(f"{_count(broken, 'file')} could not be run")
    yield ", ".join(told)
    reached = report.policies - len(report.unreached)
    yield f"{reached} of {_count(report.policies, 'policy', 'policies')} reached"
    if report.unreached:
        yield "No test reached:"
        yield from (f"    {place.policy}  ({place.file})" for place in report.unreached)


def document(report: Report) -> dict[str, Any]:
    """The report as JSON."""
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
        "findings": report.findings,
        "tests": [
            {
                "name": verdict.name,
                "line": verdict.line,
                "passed": verdict.passed,
                "result": verdict.result,
                "policies": list(verdict.policies),
                "audited": list(verdict.audited),
                "failures": [_failure(failure) for failure in verdict.failures],
                "trace": [entry._asdict() for entry in verdict.trace],
            }
            for verdict in report.verdicts
        ],
    }


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "field": failure.field,
        "expected": failure.expected,
        "seen": failure.seen,
        "because": list(failure.because),
    }


def _tests(count: int) -> str:
    return _count(count, "test")


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _ok(text: str) -> str:
    return click.style(text, fg="green")


def _bad(text: str) -> str:
    return click.style(text, fg="red", bold=True)
