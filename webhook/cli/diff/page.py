"""`fairlead diff -o html`: the report as one file, which loads nothing and runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.cli.diff import report
from webhook.shortening import harmless

if TYPE_CHECKING:
    from webhook.cli.diff.report import Outcome

_FOLDER: Final = Path(__file__).parent
# Objects that are named for one change; -o json has all.
_MOST_NAMED: Final = 200


def html(outcome: Outcome) -> str:
    """Return the page, with every change and field."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["plain"] = harmless
    head, *rows = report.sum_rows(outcome)
    return templates.get_template("page.html").render(
        outcome=outcome,
        headline=report.headline(outcome),
        remarks=list(report.remarks(outcome)),
        head=head,
        rows=rows,
        changes=[
            {
                "kind": change.change,
                "title": report.TITLES[change.change],
                "namespace": change.namespace,
                "count": change.count,
                "policies": change.policies,
                "names": [report.pod_names(each) for each in change.objects[:_MOST_NAMED]],
                "more": max(0, len(change.objects) - _MOST_NAMED),
                "rows": list(report.change_rows(change, outcome.nodes, len(change.fields))),
            }
            for change in outcome.changes
        ],
    )
