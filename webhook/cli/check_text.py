"""What `fairlead check` prints: for people line by line, for programs as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.layout import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cli.check_run import Checked
    from webhook.policy.feasibility import Feasibility, Reach
    from webhook.policy.findings import Finding

_WORDS: Final = {"PlacementPolicy": "policy", "CapacityClass": "class"}


def lines(checked: Checked) -> Iterator[str]:
    """The findings, then how many nodes each class and policy leaves, then a summary."""
    for finding in checked.findings:
        yield _finding(finding)
    if checked.findings:
        yield ""
    if checked.feasibility is not None:
        yield from _reaches(checked.feasibility)
        yield ""
    yield _summary(checked)


def _finding(finding: Finding) -> str:
    text = str(finding)
    line = f":{finding.line}:{finding.column}" if finding.line else ""
    place = f"{finding.file}{line}:"
    rest = text.removeprefix(place)
    if finding.severity == "warning":
        mark = "warning:"
        rest = rest.replace(mark, click.style(mark, fg="yellow", bold=True), 1)
    return click.style(place, bold=True) + rest


def _reaches(feasible: Feasibility) -> Iterator[str]:
    """Of a policy the whole; its parts are a matter for -o json."""
    rows = [["", f"of {feasible.total} nodes", "chosen", "tolerated", ""]]
    rows += [_row(reach) for reach in feasible.reaches if not reach.part]
    yield from table(rows, 0)


def _row(reach: Reach) -> list[str]:
    chosen = "all" if reach.chosen is None else str(reach.chosen)
    tolerated = f"{reach.tolerated:>9}"
    if not reach.tolerated and not reach.on_demand:
        tolerated = click.style(tolerated, fg="red")
    made = f"class {', '.join(reach.on_demand)} makes them on demand" if reach.on_demand else ""
    return [_WORDS[reach.kind], reach.name, f"{chosen:>6}", tolerated, made]


def _summary(checked: Checked) -> str:
    errors, warnings = checked.errors, checked.warnings
    found = click.style(
        f"{_count(errors, 'error')}, {_count(warnings, 'warning')}",
        fg="red" if errors else "yellow" if warnings else "green",
    )
    if checked.policies is None:
        return f"{_count(len(checked.files), 'file')}: {found}"
    policies, classes = len(checked.policies.policies), len(checked.policies.classes)
    what = f"{_count(policies, 'policy', 'policies')}, {_count(classes, 'class', 'classes')}"
    if exceptions := len(checked.policies.exceptions):
        what += f", {_count(exceptions, 'exception')}"
    return f"{what}, hash {checked.policies.hash[:HASH_LENGTH]}: {found}"


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count or 'no'} {one if count == 1 else many or one + 's'}"


def document(checked: Checked) -> dict[str, Any]:
    """Everything as JSON."""
    policies = checked.policies
    result: dict[str, Any] = {
        "files": list(checked.files),
        "errors": checked.errors,
        "warnings": checked.warnings,
        "findings": [asdict(finding) for finding in checked.findings],
        "policies": [policy.name for policy in policies.policies] if policies else None,
        "classes": sorted(policies.classes) if policies else None,
        "exceptions": [each.name for each in policies.exceptions] if policies else None,
        "hash": policies.hash if policies else None,
    }
    if checked.feasibility is not None:
        result["nodes"] = {
            "total": checked.feasibility.total,
            "reach": [reach._asdict() for reach in checked.feasibility.reaches],
        }
    return result
