"""Running the policy tests of a folder: from files to a report."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.errors import InvalidDocuments, UnreadableInput
from webhook.policy.load import load
from webhook.policy_tests import coverage, source
from webhook.policy_tests.judge import judged
from webhook.server.folder import is_test_file, read_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.policy.policy_set import PolicySet
    from webhook.policy_tests.coverage import Place
    from webhook.policy_tests.source import Document
    from webhook.policy_tests.verdict import Verdict


@dataclass(slots=True)
class FileReport:
    """One test file: what is wrong with it or with what it loads, and its tests' verdicts."""

    file: str
    findings: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether the file could be run, and every test in it passed."""
        return not self.findings and all(verdict.passed for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Report:
    """All test files, in order of their names; of the policies there are, those not reached."""

    files: Sequence[FileReport]
    policies: int
    unreached: Sequence[Place]

    @property
    def passed(self) -> bool:
        """Whether everything passed."""
        return all(report.passed for report in self.files)


def run(top: Path, instead: Sequence[Path] = ()) -> Report:
    """Run every test file at `top`; over the policies at `instead`, if any are given.

    Raises UnreadableInput if a file or folder cannot be read.
    """
    runner = _Runner(instead)
    reports = [
        runner.run_file(file, content)
        for file, content in read_folder(top, wanted=is_test_file).items()
    ]
    there = set(runner.loaded)
    if not instead and top.is_dir():
        there |= coverage.policies_in(read_folder(os.path.normpath(top)))
    unreached = sorted(there - runner.reached)
    return Report(reports, len(there), unreached)


class _Runner:
    """What one run has read and seen so far."""

    def __init__(self, instead: Sequence[Path]) -> None:
        self.instead = instead
        self.loaded: set[Place] = set()
        self.reached: set[Place] = set()
        self._sets: dict[tuple[str, ...], tuple[PolicySet, frozenset[Place]]] = {}

    def run_file(self, file: str, content: bytes) -> FileReport:
        """One test file."""
        report = FileReport(file)
        try:
            documents = source.parse(file, content)
        except InvalidDocuments as error:
            report.findings += map(str, error.findings)
            return report
        if not documents:
            report.findings.append(f"{file}: there is no test in here")
        for document in documents:
            try:
                policies, places = self._policies(document)
            except InvalidDocuments as error:
                report.findings += map(str, error.findings)
                continue
            verdicts = judged(document, policies)
            report.verdicts += verdicts
            self.loaded |= places
            self.reached |= coverage.reached(places, verdicts)
        return report

    def _policies(self, document: Document) -> tuple[PolicySet, frozenset[Place]]:
        """The policy set that a document is about. Raises InvalidDocuments."""
        files: dict[str, bytes] = {}
        beside = Path(document.file).parent
        paths = self.instead or [beside / path for path in document.model.policies]
        for at, path in enumerate(paths):
            try:
                # One file has one name, however a test comes to it.
                files |= read_folder(os.path.normpath(path))
            except UnreadableInput as error:
                where = () if self.instead else ("policies", at)
                raise InvalidDocuments(
                    [document.finding(where, problem) for problem in error.problems]
                ) from error
        key = tuple(sorted(files))
        if key not in self._sets:
            self._sets[key] = load(files).policies, coverage.policies_in(files)
        return self._sets[key]
