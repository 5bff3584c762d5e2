"""`python -m tests.versions [VERSION…]`: run the cluster tests against other Kubernetes versions.

One version after the other is built, cached and tested. A version whose result for this commit is
in docs/reference/versions.md is left out, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.go_programs import HOME, obtain_program
from webhook.progress import Lines
from webhook.sandbox.binaries import ALL, KUBERNETES, PROGRAMS, Module, Program, obtain_binaries
from webhook.sandbox.cache_folder import cache_directory, locked

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "versions.md"
_FOLDER: Final = "kubernetes-"
OWN: Final = KUBERNETES.version.removeprefix("v")
VERSIONS: Final = tuple(
    sorted(
        {OWN, *(path.name.removeprefix(_FOLDER) for path in HOME.glob(f"{_FOLDER}*"))},
        key=lambda version: [int(part) for part in version.split(".")],
    )
)
_ROWS_BEGIN: Final = "| Kubernetes |"
_ROW: Final = re.compile(r"^\| (\d+\.\d+\.\d+) \| (.*) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """What ran against one version. `failed` are functions, `cases_failed` counts their cases."""

    version: str
    commit: str
    tests: int
    cases_failed: int
    failed: Sequence[str]

    def row(self) -> str:
        """The version's row of the page."""
        day = datetime.now(UTC).date().isoformat()
        shown = ", ".join(f"`{each}`" for each in self.failed) or "none"
        passed = self.tests - self.cases_failed
        return f"| {self.version} | {self.commit}, {day} | {self.tests} | {passed} | {shown} |"


def programs(version: str) -> Mapping[str, Program]:
    """The programs of one version of Kubernetes; of the sandbox's own, those of the sandbox."""
    own = {name: each for name, each in PROGRAMS.items() if each.module is KUBERNETES}
    if version == OWN:
        return own
    module = Module(f"{_FOLDER}{version}", KUBERNETES.path, HOME)
    return {name: Program(name, module, each.package, each.seconds) for name, each in own.items()}


def assets(version: str) -> Path:
    """Return a folder for KUBEBUILDER_ASSETS with this version, built on first use.

    etcd and kwok are those of the sandbox. Raises SandboxError if a build fails.
    """
    folder = cache_directory(os.environ) / "versions" / version
    folder.mkdir(parents=True, exist_ok=True)
    found = dict(obtain_binaries(ALL, Lines(sys.stderr)))
    if version != OWN:
        found |= {name: obtain_program(each) for name, each in programs(version).items()}
    for name, path in found.items():
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    return folder


def run(version: str, commit: str) -> Result:
    """Run the cluster tests against one version."""
    report = cache_directory(os.environ) / "versions" / f"{version}.xml"
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(assets(version))}
    options = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-q", "--tb=short"]
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *options, "--tier", "cluster"),
            f"--junitxml={report}",
        ],
        cwd=ROOT,
        env=environment,
        check=False,
    )
    return read(version, commit, report)


def read(version: str, commit: str, report: Path) -> Result:
    """The result in pytest's report."""
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))  # noqa: S314  (our own)
    failed = [
        f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '').partition('[')[0]}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return Result(version, commit, len(cases), len(failed), sorted(set(failed)))


def results(text: str) -> dict[str, str]:
    """The rows that a page has, by version."""
    return {found[1]: found[0] for found in _ROW.finditer(text)}


def with_row(text: str, result: Result) -> str:
    """The page with this version's row in the place of its former one, versions in order."""
    rows = {**results(text), result.version: result.row()}
    ordered = "\n".join(rows[version] for version in VERSIONS if version in rows)
    head, _, rest = text.partition(_ROWS_BEGIN)
    columns, separator, *lines = rest.split("\n")
    after = "\n".join(line for line in lines if not _ROW.match(line))
    return f"{head}{_ROWS_BEGIN}{columns}\n{separator}\n{ordered}\n{after}"


def main() -> None:
    """Test every version, or those named, that has no result for this commit."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="default: all")
    parser.add_argument("--again", action="store_true", help="also versions with a result")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.versions) - set(VERSIONS)):
        sys.exit(f"no version {', '.join(unknown)}: want some of {', '.join(VERSIONS)}")
    os.nice(15)
    with locked(cache_directory(os.environ) / "versions.lock"):
        for version in arguments.versions or VERSIONS:
            commit = _commit()
            text = PAGE.read_text()
            if not arguments.again and f"| {commit}, " in results(text).get(version, ""):
                sys.stderr.write(f"{version}: has its result for {commit}\n")
                continue
            result = run(version, commit)
            PAGE.write_text(with_row(PAGE.read_text(), result))
            sys.stdout.write(result.row() + "\n")


def _commit() -> str:
    """The last commit that changed the product: results for it hold for this checkout."""
    command = ["git", "log", "-1", "--format=%h", "--", "webhook", "certs"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
