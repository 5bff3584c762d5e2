"""Run the demo."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from typing import TYPE_CHECKING, Final, NoReturn

import click

import webhook
from webhook.cli.demo import text
from webhook.cli.demo.examples import (
    NAMESPACE,
    POLICIES,
    AdmittedExample,
    explain_example,
    read_examples,
    run_demo,
    save,
)
from webhook.cli.demo.stages import loopback
from webhook.cli.exit_codes import TERMINATED
from webhook.cli.output import print_result, print_text
from webhook.policy.load import load
from webhook.server.folder import read_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from webhook.cli.demo.examples import DemoRun
    from webhook.cli.demo.stages import Loopback
    from webhook.policy.policy_set import PolicySet

_LABELS: Final = {"kubernetes.io/metadata.name": NAMESPACE}
_TO_SAVE: Final = ("fairlead demo --save mine", "write all of this to files")
_TO_EXPLAIN: Final = (
    "fairlead explain -f mine/pods.yaml --policies mine/policies",
    "show each result with its reasons",
)
_TO_PREVIEW: Final = (
    "fairlead run preview -f mine/run.yaml --policies mine/policies",
    "show the pods of the Run",
)
_TO_KEEP: Final = (
    'eval "$(fairlead sandbox up --policies mine/policies)"',
    "start a cluster for your kubectl",
)


def save_files(folder: Path) -> None:
    """Write the demo's files into a new folder, and print what to do with them."""
    save(folder)
    click.echo(f"{folder} has the demo's policies, their tests, pods, a Run and the namespace")
    name = shlex.quote(str(folder))
    hints = (
        (f"fairlead test {name}", "run the policies' tests"),
        (f"fairlead explain -f {name}/pods.yaml --policies {name}/policies", _TO_EXPLAIN[1]),
        (f"fairlead run preview -f {name}/run.yaml --policies {name}/policies", _TO_PREVIEW[1]),
        (f'eval "$(fairlead sandbox up --policies {name}/policies)"', _TO_KEEP[1]),
        (f"kubectl create -f {name}/namespace.yaml", "create their namespace"),
        (f"kubectl create -f {name}/pods.yaml -f {name}/run.yaml", "create the pods and the Run"),
    )
    print_text("text", ["", *text.hints(hints)])


def run(output: str) -> None:
    """Run the demo, on loopback."""
    policies = load(read_folder(POLICIES)).policies
    with _tidy_end(), loopback() as stage:
        head = text.title(
            f"Fairlead {webhook.__version__}: the demo without a cluster",
            f"The real webhook answers AdmissionReviews over {stage.tls} at {stage.url}. "
            "There is no API server: no pod is created or scheduled.",
        )
        shown = _show_examples(stage, policies, head, output)
        run = _show_run(stage, policies, shown, output)
        hints = (_TO_SAVE, _TO_EXPLAIN, _TO_PREVIEW, _TO_KEEP)
        print_result(
            output,
            json=lambda: {
                "kind": "loopback",
                "examples": [one.document() for one in shown],
                "run": run.document(),
            },
            text=lambda: ["", *text.hints(hints)],
        )


def _show_examples(
    stage: Loopback, policies: PolicySet, head: Iterable[str], output: str
) -> list[AdmittedExample]:
    """Print every example as soon as it is answered."""
    print_text(output, [*head, "", *text.policies(policies.policies)])
    result = []
    for number, example in enumerate(read_examples(), 1):
        shown = explain_example(example, stage.admit(example), policies, _LABELS)
        result.append(shown)
        print_text(output, ["", *text.example(shown, number)])
    return result


def _show_run(
    stage: Loopback, policies: PolicySet, examples: Sequence[AdmittedExample], output: str
) -> DemoRun:
    """Print the Run, and that the engine gives the same answers offline."""
    run = run_demo(stage, policies, _LABELS)
    print_text(output, ["", *text.run(run, len(examples) + 1)])
    print_text(output, ["", *text.agreement(len(examples) + len(run.members))])
    return run


@contextlib.contextmanager
def _tidy_end() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that everything is cleaned up."""

    def end(_number: int, _frame: object) -> NoReturn:
        sys.exit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
