"""Runs the demo from its first line to its last."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import click

import webhook
from webhook.cli.demo import text
from webhook.cli.demo.admitted import Shown, explained
from webhook.cli.demo.cluster import at_hand, cluster, obtained
from webhook.cli.demo.examples import NAMESPACE, POLICIES, read_examples, save
from webhook.cli.demo.loopback import loopback
from webhook.cli.demo.whole_run import Runner, shown_run
from webhook.policy.load import load
from webhook.sandbox.progress import Lines
from webhook.server.folder import read_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from webhook.cli.demo.admitted import Admitted
    from webhook.cli.demo.cluster import Tools
    from webhook.cli.demo.examples import Example
    from webhook.cli.demo.whole_run import ShownRun
    from webhook.policy.policy_set import PolicySet

_LABELS: Final = {"kubernetes.io/metadata.name": NAMESPACE}
_TO_SAVE: Final = ("fairlead demo --save mine", "all of this as files")
_TO_EXPLAIN: Final = (
    "fairlead explain -f mine/pods.yaml --policies mine/policies",
    "what becomes of them, and why",
)
_TO_PREVIEW: Final = (
    "fairlead run preview -f mine/run.yaml --policies mine/policies",
    "all that the Run would be",
)
_TO_BUILD: Final = (
    "fairlead demo --cluster",
    "on a real API server, built once",
)
_TO_KEEP: Final = (
    'eval "$(fairlead sandbox up --policies mine/policies)"',
    "a cluster for your kubectl",
)


class Stage(Runner, Protocol):
    """Where the demo runs."""

    def admit(self, example: Example) -> Admitted:
        """Have the example's pod admitted, or refused."""


def saved(folder: Path) -> None:
    """Write the demo's files into a new folder, and say so."""
    save(folder)
    click.echo(f"{folder} has the demo's policies, their tests, pods, a Run and the namespace")
    name = shlex.quote(str(folder))
    hints = (
        (f"fairlead test {name}", "the policies' tests"),
        (f"fairlead explain -f {name}/pods.yaml --policies {name}/policies", _TO_EXPLAIN[1]),
        (f"fairlead run preview -f {name}/run.yaml --policies {name}/policies", _TO_PREVIEW[1]),
        (f'eval "$(fairlead sandbox up --policies {name}/policies)"', _TO_KEEP[1]),
        (f"kubectl create -f {name}/namespace.yaml", "where they are to be"),
        (f"kubectl create -f {name}/pods.yaml -f {name}/run.yaml", "all of it, for real"),
    )
    _print(["", *text.hints(hints)])


def run(wanted: bool | None, *, as_json: bool) -> None:
    """Show everything, with a cluster, without, or (None) with one if that takes no building."""
    progress = Lines(sys.stderr)
    policies = load(read_folder(POLICIES)).policies
    with _tidy_end():
        tools = obtained(progress) if wanted else at_hand(progress) if wanted is None else None
        if tools:
            _on_cluster(tools, policies, progress, as_json=as_json)
        else:
            _on_loopback(policies, asked=wanted is False, as_json=as_json)


def _on_loopback(policies: PolicySet, *, asked: bool, as_json: bool) -> None:
    with loopback() as stage:
        reason = "" if asked else ", for its binaries are not built here"
        head = text.title(
            f"Fairlead {webhook.__version__}: the demo without a cluster",
            f"The real webhook answers real AdmissionReviews over {stage.tls} at {stage.url}. "
            f"There is no API server{reason}: no pod is created, and none is scheduled.",
        )
        shown = _shown(stage, policies, head, as_json=as_json)
        run = _shown_run(stage, policies, shown, as_json=as_json)
        if as_json:
            _print_json("loopback", shown, run=run.document())
            return
        hints = (_TO_SAVE, _TO_EXPLAIN, _TO_PREVIEW, _TO_BUILD, _TO_KEEP)
        _print(["", *text.hints(hints)])


def _on_cluster(tools: Tools, policies: PolicySet, progress: Lines, *, as_json: bool) -> None:
    with cluster(tools, progress) as stage:
        head = text.title(
            f"Fairlead {webhook.__version__}: the demo on a real control plane",
            "kubectl creates the pods, and the real controller those of a Run, at a kube-apiserver "
            f"{stage.version}, which asks the real webhook at {stage.url}; the real scheduler "
            f"places them on {stage.nodes} nodes. Only the nodes are simulated, by kwok: no "
            "container is started.",
        )
        shown = _shown(stage, policies, head, as_json=as_json)
        places = stage.places(policies.classes)
        run = _shown_run(stage, policies, shown, as_json=as_json)
        if as_json:
            found = [place.document() for place in places]
            _print_json("cluster", shown, run=run.document(), places=found)
            return
        _print(["", *text.places(places, shown), ""])
        _print(text.hints((_TO_SAVE, _TO_EXPLAIN, _TO_PREVIEW, _TO_KEEP)))


def _shown(stage: Stage, policies: PolicySet, head: Iterable[str], *, as_json: bool) -> list[Shown]:
    """Every example, printed as soon as it is answered."""
    if not as_json:
        _print([*head, "", *text.policies(policies.policies)])
    result = []
    for number, example in enumerate(read_examples(), 1):
        shown = explained(example, stage.admit(example), policies, _LABELS)
        result.append(shown)
        if not as_json:
            _print(["", *text.example(shown, number)])
    return result


def _shown_run(
    stage: Stage, policies: PolicySet, examples: Sequence[Shown], *, as_json: bool
) -> ShownRun:
    """The Run, printed after the examples, and that all was foreseen."""
    run = shown_run(stage, policies, _LABELS)
    if not as_json:
        _print(["", *text.run(run, len(examples) + 1)])
        _print(["", *text.agreement(len(examples) + len(run.members))])
    return run


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _print_json(kind: str, shown: list[Shown], **more: Any) -> None:
    document = {"kind": kind, "examples": [one.document() for one in shown], **more}
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


@contextlib.contextmanager
def _tidy_end() -> Iterator[None]:
    """Let SIGTERM end the demo as an exception does, so that everything is cleared away."""

    def end(_number: int, _frame: object) -> NoReturn:
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
