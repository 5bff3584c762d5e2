"""`python -m tests.reference_pages`: write the generated pages of docs/reference.

They are made from the programs themselves: from click's parameters, from what the webhook and the
controller expose, from the scenarios, and from the messages. tests/test_docs.py compares them.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
from prometheus_client import CollectorRegistry

from tests.fast_yaml import load_yaml
from tests.manifests.chart import CHART
from tests.manifests.value_rows import described
from tests.messages import (
    GROUPS,
    Message,
    code,
    golden_messages,
    other_messages,
    scheduler_messages,
)
from tests.scenarios import SCENARIOS
from tests.test_metric_names import controllers, webhooks
from webhook.cli import fairlead
from webhook.cli.exit_codes import MEANINGS
from webhook.cli.output import OutputOption
from webhook.policy.json_schema import Row, table
from webhook.text.documents import REPORTS

DOCS: Final = Path(__file__).parents[1] / "docs"
FOLDER: Final = DOCS / "reference"
SECURITY_EVIDENCE: Final = Path(__file__).with_name("security_evidence.yaml")


def commands() -> str:
    """Return the page of all commands with their options."""
    lines = [
        "# Commands",
        "",
        (
            "Every command with its options. `fairlead COMMAND --help` also has examples and exit "
            "codes; [What an answer promises](answers.md) has what exit code 0 means."
        ),
        "",
        "## Exit codes",
        "",
        "All commands have one scheme.",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| {code} | {_cell(meaning)} |" for code, meaning in MEANINGS.items()),
    ]
    for path, command in _walk(fairlead, ("fairlead",)):
        usage = " ".join(command.collect_usage_pieces(click.Context(command)))
        summary, _, _ = inspect.cleandoc(command.help or "").partition("\n\n")
        lines += ["", f"## {' '.join(path)}", "", " ".join(summary.split()), ""]
        lines += [f"Usage: `{' '.join(path)} {usage}`", ""]
        options = [each for each in command.params if isinstance(each, click.Option)]
        lines += table(
            "option | meaning", (_row(command, each) for each in options if not each.hidden)
        )
    lines += [
        "",
        "## Reports",
        "",
        (
            f"A report for programs is one object, with `apiVersion: {REPORTS}` and a `kind`. If "
            "the command failed, the report has only `findings`. Each finding has `severity` and "
            "`message`, and if they are known `file`, `line`, `column` and `path`. All other forms "
            "for programs are objects as kubectl takes them."
        ),
        "",
        "| command | `-o` | `kind` |",
        "|---|---|---|",
    ]
    for path, command in _walk(fairlead, ("fairlead",)):
        for each in command.params:
            if isinstance(each, OutputOption) and isinstance(each.type, click.Choice):
                forms = ", ".join(f"`{form}`" for form in each.reports if form in each.type.choices)
                lines += [f"| `{' '.join(path)}` | {forms} | `{each.report}` |"] if forms else []
    return "\n".join(lines) + "\n"


def metrics() -> str:
    """Return the page of all metrics of both programs."""
    lines = [
        "# Metrics",
        "",
        (
            "Every metric that the webhook and the controller expose at `/metrics` of their health "
            "port, beside those of the Python process. [React to alerts](../guides/alerts.md) has "
            "what to watch, and the alerts that ship."
        ),
    ]
    for program, registry in (("webhook", webhooks()), ("controller", controllers())):
        lines += ["", f"## Metrics of the {program}", "", "| metric | type | meaning |"]
        lines += ["|---|---|---|", *sorted(_metric_rows(registry))]
    return "\n".join(lines) + "\n"


def chart() -> str:
    """Return the page of the values of the Helm chart, from its schema and its values.yaml."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = load_yaml((CHART / "values.yaml").read_text())
    lines = [
        "# Values of the Helm chart",
        "",
        (
            "Every value with its default. [Install Fairlead with Helm](../guides/helm.md) has "
            "what to choose when, and what is rejected. A value that is a field of pods has the "
            "form that Kubernetes gives it."
        ),
        "",
        "| value | default | meaning |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{path}` | `{_cell(json.dumps(default))}` | {_cell(about)} |"
        for path, default, about in described(schema, defaults)
    ]
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
        if found:
            yield from _walk(found, (*path, name))


def _row(command: click.Command, option: click.Option) -> Row:
    names, meaning = option.get_help_record(click.Context(command)) or ("", "")
    about, bracket, default = _cell(meaning).partition(" [default: ")
    name = f"`{_cell(names)}`"
    return Row(name, name, about, f"{bracket}{default}")


def _metric_rows(registry: CollectorRegistry) -> Iterator[str]:
    for family in registry.collect():
        if family.name.startswith("fairlead_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield f"| `{name}` | {family.type} | {_cell(family.documentation)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def scenarios() -> str:
    """Return the page of all scenarios: what stands in the comment above each."""
    lines = [
        "# Scenarios",
        "",
        (
            "Each scenario is a pod, policies, and what else is in the cluster. The tests ask "
            "every command that decides on pods about each of them, in every format. For files "
            "these are `preview`, `explain`, `diff` and `test`; for live pods `explain`, "
            "`policy list` and `pods --no-node`. The tests also read the webhook's warnings to the "
            "author of a Job, and the policy reports. All have to agree with each other, and with "
            "what a real API server and a real scheduler do. For what is not checked, see [What an "
            "answer promises](answers.md)."
        ),
        "",
        "| scenario | what meets |",
        "|---|---|",
    ]
    for path in SCENARIOS:
        comment = itertools.takewhile(lambda line: line[:1] == "#", path.read_text().splitlines())
        text = " ".join(line.removeprefix("#").strip() for line in comment)
        lines.append(f"| {path.stem.replace('-', ' ')} | {_cell(text)} |")
    return "\n".join(lines) + "\n"


def messages() -> str:
    """Return the page that leads to all messages, with what the scheduler says."""
    lines = [
        "# Messages",
        "",
        (
            "Search for the words of a message, without your names and numbers: those here are "
            "examples. [When something is wrong](../guides/when-something-is-wrong.md) begins with "
            "the symptom, and [Read warnings and Events](../guides/warnings.md) explains what "
            "authors of workloads see."
        ),
        "",
        "| messages about | number |",
        "|---|---|",
        *(
            f"| [{group}](messages/{message_page(group)}.md) | {len(texts)} |"
            for group, texts in _message_groups().items()
        ),
        "",
        (
            "A test compares the wording of each message with its example here. It does not for "
            f"[other messages](messages/{message_page(OTHER)}.md): they are read from the code, "
            "and `…` or `%s` stands for what varies. The pages lack other messages of a few "
            "words, and words that the code takes from a table. They also lack the messages of "
            "kubectl and of the parser of the command line."
        ),
        "",
        "## What the scheduler says of a pod that waits",
        "",
        "Events show these, and so do the pages of `fairlead ui`.",
        "",
        *map(_entry, scheduler_messages()),
    ]
    return "\n".join(lines) + "\n"


def message_group(group: str) -> str:
    """Return the page of the messages of a group, with cause and cure, by command."""
    about = "Each has its cause and its cure, where it does not just report a state."
    back = "[Messages](../messages.md) has the other groups."
    lines = [f"# {group}", "", f"{about} {back}"]
    command = ""
    for message in _message_groups()[group]:
        if message.command != command:
            command = message.command
            lines += ["", f"## {command}"]
        lines += ["", _entry(message)]
    return "\n".join(lines) + "\n"


OTHER: Final = "Other messages"


@functools.cache
def _message_groups() -> dict[str, list[Message]]:
    return {**golden_messages(), OTHER: other_messages()}


def message_page(group: str) -> str:
    """Return the name of a group's page: its first words."""
    return re.split("[:,]", group)[0].lower().replace(" ", "-")


def _entry(message: Message) -> str:
    """Return a message with its cause and cure, under an anchor of its own."""
    cause, cure = message.explanation
    parts = [
        " ".join(map(code, message.text.splitlines())),
        *([f"Cause: {cause}"] if cause else []),
        *([f"Cure: {cure}"] if cure else []),
    ]
    return f'- <a id="{message.anchor}"></a>' + "<br>".join(parts)


def security_evidence() -> str:
    """Return the page of the tests that show what the pages about security claim."""
    lines = [
        "# Evidence for security",
        "",
        (
            "This page is for security reviewers. It lists the tests that show each claim of "
            "[Secure Fairlead](../security.md) and its pages; the name of a test is a rule. A test "
            "checks that each claim is on its page, and that each test exists. [Test "
            "Fairlead](../testing.md) has the commands that run the tests."
        ),
    ]
    for page, claims in security_claims().items():
        title = (DOCS / page).read_text().partition("\n")[0].removeprefix("# ")
        lines += ["", f"## {title}", "", f"Claims of [{title}](../{page}):", ""]
        lines += ["| claim | tests |", "|---|---|"]
        lines += [f"| {claim} | {', '.join(map(code, tests))} |" for claim, tests in claims.items()]
    return "\n".join(lines) + "\n"


def security_claims() -> dict[str, dict[str, list[str]]]:
    """Return the tests for each claim of each page about security."""
    claims: dict[str, dict[str, list[str]]] = load_yaml(SECURITY_EVIDENCE.read_text())
    return claims


PAGES: Final[dict[str, Callable[[], str]]] = {
    "chart": chart,
    "commands": commands,
    "messages": messages,
    **{
        f"messages/{message_page(group)}": functools.partial(message_group, group)
        for group in (*GROUPS, OTHER)
    },
    "metrics": metrics,
    "scenarios": scenarios,
    "security-evidence": security_evidence,
}


def main() -> None:
    (FOLDER / "messages").mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / f"{name}.md").write_text(make())


if __name__ == "__main__":
    main()
