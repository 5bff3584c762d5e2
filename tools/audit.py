"""`make audit`: hold the locks against the known vulnerabilities, and believe no empty answer.

pip-audit says "No known vulnerabilities found", and exits with 0, also where the data has none of
the packages, as behind a mirror that serves files alone. Here a package that was not looked up
counts as not known.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tools import lock

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

CLEAN: Final = 0
VULNERABLE: Final = 1
UNKNOWN: Final = 2
_NO_DATA: Final = (
    "nothing is known of these. pip-audit asks the JSON API of PyPI, which a mirror that serves "
    "files alone does not have: run `make audit` where it can be reached"
)


class Verdict(NamedTuple):
    """The exit code, and what to print."""

    code: int
    lines: tuple[str, ...]


def judged(report: Any, wanted: Collection[str], trouble: str) -> Verdict:
    """Return what a report of pip-audit (`--format json`; None if there is none) says of these
    packages.

    `trouble` is what it wrote beside. A finding goes before what could not be looked up.
    """
    packages = report.get("dependencies", ()) if isinstance(report, dict) else ()
    package_by_name = {package["name"].lower(): package for package in packages}
    findings = [
        f"{name} {package['version']}: {vulnerability['id']}, {_cure(vulnerability)}"
        for name, package in sorted(package_by_name.items())
        for vulnerability in package.get("vulns", ())
    ]
    missing = sorted(
        set(wanted) - {name for name, package in package_by_name.items() if "vulns" in package}
    )
    lines = [*findings]
    if missing:
        first = ", ".join(missing[:3]) + (", …" if missing[3:] else "")
        lines += [
            f"of {len(wanted)} packages {len(missing)} could not be looked up: {first}",
            _NO_DATA,
            # With a report it is what pip-audit makes of nothing: that it found nothing.
            *(trouble.strip().splitlines()[-1:] if report is None else ()),
        ]
    if findings:
        return Verdict(VULNERABLE, tuple(lines))
    if missing:
        return Verdict(UNKNOWN, tuple(lines))
    return Verdict(CLEAN, (f"{len(wanted)} packages, no known vulnerability",))


def _cure(vulnerability: dict[str, Any]) -> str:
    fixed = ", ".join(vulnerability.get("fix_versions", ()))
    return f"mended in {fixed}: run `make lock`" if fixed else "not mended in any version yet"


def main(arguments: Sequence[str]) -> int:
    """`python -m tools.audit PIP_AUDIT LOCK...`: print the verdict of each lock; the worst code.

    0: clean, 1: known vulnerabilities, 2: the data could not be reached.
    """
    program, *paths = arguments
    worst = CLEAN
    for path in paths:
        wanted = {package.name for package in lock.read(Path(path).read_text())}
        done = subprocess.run(  # noqa: S603  the program of the make target
            [
                *(program, "--require-hashes", "--disable-pip", "--progress-spinner=off"),
                *("--format=json", "--timeout=30", "--requirement", path),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            report = json.loads(done.stdout)
        except ValueError:
            report = None
        verdict = judged(report, wanted, done.stderr)
        for line in verdict.lines:
            print(f"{path}: {line}")
        worst = max(worst, verdict.code) if VULNERABLE not in (worst, verdict.code) else VULNERABLE
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
