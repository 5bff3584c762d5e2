"""`python -m tests.reference_pages`: write docs/reference/commands.md and metrics.md.

Both are made from the programs themselves: from click's parameters and from what the webhook and
the controller expose. tests/test_docs.py compares them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from prometheus_client import CollectorRegistry

from tests.test_metric_names import controllers, webhooks
from webhook.cli import fairlead

FOLDER: Final = Path(__file__).parents[1] / "docs" / "reference"


def commands() -> str:
    """Return the page of all commands with their options."""
    lines = [
        "# Commands",
        "",
        (
            "Every command with its options. `fairlead COMMAND --help` also has examples and exit "
            "codes; [What an answer promises](answers.md) has what exit code 0 means."
        ),
    ]
    for path, command in _walk(fairlead, ("fairlead",)):
        usage = " ".join(command.collect_usage_pieces(click.Context(command)))
        summary, _, _ = inspect.cleandoc(command.help or "").partition("\n\n")
        lines += ["", f"## {' '.join(path)}", "", " ".join(summary.split()), ""]
        lines += [f"Usage: `{' '.join(path)} {usage}`", ""]
        options = [each for each in command.params if isinstance(each, click.Option)]
        lines += ["| option | meaning |", "|---|---|"]
        lines += [_row(command, each) for each in options if not each.hidden]
    return "\n".join(lines) + "\n"


def metrics() -> str:
    """Return the page of all metrics of both programs."""
    lines = [
        "# Metrics",
        "",
        (
            "Every metric that the webhook and the controller expose at `/metrics` of their health "
            "port, beside those of the Python process. [Operate](../guides/operate.md) has what to "
            "watch, and the alerts that ship."
        ),
    ]
    for program, registry in (("webhook", webhooks()), ("controller", controllers())):
        lines += ["", f"## Metrics of the {program}", "", "| metric | type | meaning |"]
        lines += ["|---|---|---|", *sorted(_metric_rows(registry))]
    return "\n".join(lines) + "\n"


def _walk(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group, in the order of its group's help."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found and not found.hidden:
            yield from _walk(found, (*path, name))


def _row(command: click.Command, option: click.Option) -> str:
    names, meaning = option.get_help_record(click.Context(command)) or ("", "")
    return f"| `{_cell(names)}` | {_cell(meaning)} |"


def _metric_rows(registry: CollectorRegistry) -> Iterator[str]:
    for family in registry.collect():
        if family.name.startswith("fairlead_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield f"| `{name}` | {family.type} | {_cell(family.documentation)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write both pages."""
    (FOLDER / "commands.md").write_text(commands())
    (FOLDER / "metrics.md").write_text(metrics())


if __name__ == "__main__":
    main()
