"""`fairlead run simulate`: compare policies by what becomes of Runs on nodes that come and go."""

from __future__ import annotations

import sys
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.exit_codes import FAILED
from webhook.cli.options import cluster_options, namespace_option, policies_option
from webhook.cli.output import output_option, print_notes, print_result, say
from webhook.cli.short_help import Command
from webhook.errors import PassOver
from webhook.questions.where import CLUSTER, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.run_client.run_files import Planned
    from webhook.simulation.scenario import Scenario
    from webhook.simulation.summary import Simulated

_FILE: Final = click.Path(exists=True, path_type=Path, dir_okay=False, allow_dash=True)


@click.command("simulate", cls=Command)
@click.option(
    "-f",
    "--filename",
    "filenames",
    required=True,
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="A Run, or some that share the nodes. Repeatable: each file is played by itself.",
)
@policies_option(
    "A folder of policies, or a file, or `cluster`. Repeatable: each is a set of its own. Default: "
    "no policies.",
)
@click.option(
    "--scenario",
    required=True,
    type=_FILE,
    metavar="FILE",
    help="The document Scenario: pools of nodes, what becomes of them, and the program.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="How many runs of each set to simulate.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32),
    default=1,
    show_default=True,
    help="Another one gives other random numbers; all sets of one call have the same.",
)
@click.option("--events", is_flag=True, help="Print what happened in the first repetition.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a plot of times and costs as SVG; needs fairlead[plot].",
)
@namespace_option("The namespace of a Run without one.", "default")
@click.option(
    "--namespaces",
    "namespaces_file",
    type=_FILE,
    metavar="FILE",
    help="What `kubectl get ns -o yaml` prints: labels that policies use. Default: the cluster's, "
    "with --policies cluster.",
)
@cluster_options
@output_option(
    "json and yaml: each repetition, with all that happened.", report="Simulation", tables=True
)
def command(
    filenames: tuple[Path, ...],
    policies: tuple[Where, ...],
    scenario: Path,
    repeat: int,
    seed: int,
    events: bool,
    plot: Path | None,
    namespace: str,
    namespaces_file: Path | None,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Compare policies by what becomes of Runs on nodes that come and go.

    The webhook's decisions and the controller's are computed as in a cluster, in virtual time.
    Scheduler, autoscaler, nodes and program follow the Scenario, with the same random numbers for
    every set of policies. It compares decisions under assumptions, which it prints. It is no
    forecast: what clouds do is not known.

    Cost is in hours of a replica on demand, by the price of each pool; waiting are hours of
    replicas without a node, held are those on nodes while others of the run had none, and lost are
    all those that brought no progress. After ± is half of an interval that has the true mean in 95
    of 100 cases; 90 % of the runs take at most so long. Figures are those of the runs that
    succeeded; sets are compared if all runs of both did.

    \b
    Examples:
      fairlead run simulate -f run.yaml --policies spot/ --scenario week.yaml
      fairlead run simulate -f run.yaml --policies a/ --policies b/ --scenario week.yaml
      fairlead run simulate -f run.yaml --policies cluster --policies b/ --scenario week.yaml
      fairlead run simulate -f plain.yaml -f gang.yaml --scenario two-teams.yaml

    \b
    Exit codes:
      0  shown
      1  a pod would be rejected, no run of a set succeeded, or a file cannot be read
      2  wrong usage, or the cluster did not answer
    """
    plays = {file: _read_runs(file, namespace) for file in filenames}
    assumed = _read_scenario(scenario, plays)
    if plot is not None:
        from webhook.simulation.plot import figure_class

        # If it cannot be drawn, nothing is computed for nothing.
        figure_class()
        if plot.suffix != ".svg":
            raise click.UsageError(f"--plot writes SVG: name the file {plot.with_suffix('.svg')}")
        if not plot.parent.is_dir():
            raise click.UsageError(f"--plot: there is no folder {plot.parent}; make it first")
    first = next(iter(plays.values()))[0].run.namespace
    worlds = _worlds(policies, first, namespaces_file, kubeconfig)
    sets = []
    for file, runs in plays.items():
        for where, world in zip(policies or ("no policies",), worlds, strict=True):
            parts = ((file, len(plays) > 1), (where, len(policies) > 1 or len(plays) == 1))
            name = ", ".join(str(part) for part, differs in parts if differs)
            sets += _simulated(name, world, runs, assumed, repeat=repeat, seed=seed)
    if plot is not None:
        from webhook.simulation.plot import svg_of

        plot.write_bytes(svg_of(sets, f"{assumed.metadata.name}: {repeat} runs, seed {seed}"))
    print_result(
        output,
        json=lambda: _document(assumed, sets, seed),
        text=lambda: _lines(assumed, sets, seed, events=events),
    )
    lost = [simulation for simulation in sets if not simulation.done]
    for simulation in lost:
        say("error", f"no run succeeded: {next(simulation.others())}")
    if lost:
        sys.exit(FAILED)


def _read_runs(file: Path, namespace: str) -> list[Planned]:
    """Return the Runs of a file. Raises UnreadableInput if one is not simulated."""
    from webhook.errors import UnreadableInput
    from webhook.run_client.run_files import read_plans

    runs = read_plans([file], namespace, "")
    for planned in runs:
        spec, place = planned.run.spec, file if len(runs) == 1 else planned.place
        why = ""
        if planned.plan is None:
            why = f"spec.backend is {spec.backend}: only Fairlead's own controller is simulated"
        elif spec.serving:
            why = f"spec.kind is {spec.kind}, which does not end by itself"
        elif spec.suspend:
            why = "spec.suspend is true: remove it, or nothing happens"
        if why:
            raise UnreadableInput([f"{place}: {why}"])
    return runs


def _read_scenario(path: Path, plays: Mapping[Path, Sequence[Planned]]) -> Scenario:
    """Return the scenario of a file. Raises UnreadableInput if a file lacks a run that it names."""
    from webhook.errors import UnreadableInput
    from webhook.simulation.scenario import parse

    with click.open_file(str(path), "rb") as text:
        scenarios = parse(str(path), text.read())
    if len(scenarios) != 1:
        raise UnreadableInput([f"{path}: want one Scenario, not {len(scenarios)}"])
    for run in scenarios[0].spec.runs or ():
        for file, runs in plays.items():
            if run.name not in (planned.run.name for planned in runs):
                raise UnreadableInput(
                    [f"{path}: spec.runs: {file} has no Run {run.name}; correct the name"]
                )
    return scenarios[0]


def _worlds(
    policies: Sequence[Where], namespace: str, namespaces_file: Path | None, kubeconfig: Kubeconfig
) -> list[World]:
    """Return a world for each set of policies; the labels of namespaces are the same in all."""
    from webhook.policy.load import load
    from webhook.questions.cluster_surroundings import read_labels
    from webhook.questions.live.live_answers import policy_set
    from webhook.questions.offline import read_policies, unread_world, with_given

    async def read(client: Client) -> World:
        world = unread_world(await policy_set(client, ()))
        with PassOver(HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            return replace(world, namespaces=await read_labels(client, namespace))
        return world

    live = kubeconfig.ask(read) if CLUSTER in policies else unread_world(load({}).policies)
    world = with_given(live, [], namespaces_file)
    return [
        world if source is CLUSTER else replace(world, policies=read_policies([source]))
        for source in policies
    ] or [world]


def _simulated(
    name: str,
    world: World,
    runs: Sequence[Planned],
    scenario: Scenario,
    *,
    repeat: int,
    seed: int,
) -> list[Simulated]:
    """Play the runs of a file under one set; return one result for each run."""
    from webhook.questions.offline import unknown_labels, unknown_values
    from webhook.simulation.placer import Placer
    from webhook.simulation.play import Play
    from webhook.simulation.summary import Simulated

    templates = [entry for planned in runs for entry in planned.templates(world.policies.sources)]
    print_notes(unknown_labels(world.policies, templates, world.namespaces, "--namespaces"))
    print_notes(unknown_values(world.policies, templates))
    placers = [
        Placer(world, planned.run, scenario.spec.pools, number)
        for number, planned in enumerate(runs)
    ]
    plays = []
    with click.progressbar(
        range(repeat), label=name, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as repetitions:
        for repetition in repetitions:
            play = Play(placers, scenario.spec, seed=seed, repetition=repetition)
            plays.append(play.endings())
    names = [planned.run.name if len(runs) > 1 else "" for planned in runs]
    return [
        Simulated(name, endings, run)
        for run, endings in zip(names, zip(*plays, strict=True), strict=True)
    ]


def _lines(
    scenario: Scenario, sets: Sequence[Simulated], seed: int, *, events: bool
) -> Iterator[str]:
    from webhook.simulation.play import ASSUMPTIONS
    from webhook.simulation.summary import HEAD, differences, lines_of
    from webhook.text.layout import table

    if events:
        for simulation in sets:
            yield f"{simulation.label}, the first repetition:"
            yield from lines_of(simulation.endings[0])
            yield ""
    repeat = len(sets[0].endings)
    noun = "repetition" if repeat == 1 else "repetitions"
    yield f"Scenario {scenario.metadata.name}: {repeat} {noun}, seed {seed}"
    yield ""
    yield from table(HEAD, [simulation.row() for simulation in sets])
    yield ""
    for simulation in sets:
        yield from (f"  {line}" for line in simulation.others())
    yield from (f"  {line}" for line in differences(sets))
    if len(sets) > 1:
        yield ""
    yield "Assumed:"
    yield from (f"  - {assumption}" for assumption in ASSUMPTIONS)


def _document(scenario: Scenario, sets: Sequence[Simulated], seed: int) -> dict[str, Any]:
    from webhook.simulation.play import ASSUMPTIONS

    return {
        "scenario": scenario.metadata.name,
        "seed": seed,
        "sets": [simulation.document() for simulation in sets],
        "assumptions": ASSUMPTIONS,
    }
