"""`fairlead run simulate`: compare policies by what becomes of a Run on nodes that come and go."""

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
    from collections.abc import Iterator, Sequence

    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.run_client.run_files import Planned
    from webhook.simulation.scenario import Scenario
    from webhook.simulation.summary import Simulated

_FILE: Final = click.Path(exists=True, path_type=Path, dir_okay=False, allow_dash=True)


@click.command("simulate", cls=Command)
@click.option("-f", "--filename", required=True, type=_FILE, metavar="FILE", help="The Run.")
@policies_option(
    "A folder of policies, or a file, or `cluster`. Repeatable: each is a set of its own.",
    required=True,
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
    filename: Path,
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
    """Compare policies by what becomes of a Run on nodes that come and go.

    The webhook's decisions and the controller's are computed as in a cluster, in virtual time.
    Scheduler, autoscaler, nodes and program follow the Scenario, with the same random numbers for
    every set of policies. It compares decisions under assumptions, which it prints. It is no
    forecast: what clouds do is not known.

    Cost is in hours of a replica on demand, by the price of each pool; waiting are hours of
    replicas without a node, and lost are those on nodes that brought no progress. After ± is half
    of an interval that has the true mean in 95 of 100 cases; 90 % of the runs take at most so long.
    Figures are those of the runs that succeeded; sets are compared if all runs of both did.

    \b
    Examples:
      fairlead run simulate -f run.yaml --policies spot/ --scenario week.yaml
      fairlead run simulate -f run.yaml --policies a/ --policies b/ --scenario week.yaml
      fairlead run simulate -f run.yaml --policies cluster --policies b/ --scenario week.yaml

    \b
    Exit codes:
      0  shown
      1  a pod would be rejected, no run of a set succeeded, or a file cannot be read
      2  wrong usage, or the cluster did not answer
    """
    from webhook.errors import UnreadableInput
    from webhook.run_client.run_files import read_plans
    from webhook.simulation.scenario import parse

    runs = read_plans([filename], namespace, "")
    if len(runs) != 1:
        raise UnreadableInput([f"{filename}: want one Run, not {len(runs)}"])
    if runs[0].plan is None:
        engine = runs[0].run.spec.backend
        raise UnreadableInput(
            [f"{filename}: spec.backend is {engine}: only Fairlead's own controller is simulated"]
        )
    if runs[0].run.spec.serving:
        kind = runs[0].run.spec.kind
        raise UnreadableInput([f"{filename}: spec.kind is {kind}, which does not end by itself"])
    if runs[0].run.spec.suspend:
        raise UnreadableInput([f"{filename}: spec.suspend is true: remove it, or nothing happens"])
    with click.open_file(str(scenario), "rb") as file:
        scenarios = parse(str(scenario), file.read())
    if len(scenarios) != 1:
        raise UnreadableInput([f"{scenario}: want one Scenario, not {len(scenarios)}"])
    if plot is not None:
        from webhook.simulation.plot import figure_class

        # If it cannot be drawn, nothing is computed for nothing.
        figure_class()
        if plot.suffix != ".svg":
            raise click.UsageError(f"--plot writes SVG: name the file {plot.with_suffix('.svg')}")
        if not plot.parent.is_dir():
            raise click.UsageError(f"--plot: there is no folder {plot.parent}; make it first")
    worlds = _worlds(policies, runs[0].run.namespace, namespaces_file, kubeconfig)
    sets = [
        _simulated(str(where), world, runs[0], scenarios[0], repeat=repeat, seed=seed)
        for where, world in zip(policies, worlds, strict=True)
    ]
    if plot is not None:
        from webhook.simulation.plot import svg_of

        plot.write_bytes(svg_of(sets, f"{scenarios[0].metadata.name}: {repeat} runs, seed {seed}"))
    print_result(
        output,
        json=lambda: _document(scenarios[0], sets, seed),
        text=lambda: _lines(scenarios[0], sets, seed, events=events),
    )
    lost = [simulation for simulation in sets if not simulation.done]
    for simulation in lost:
        say("error", f"no run succeeded under {simulation.policies}: {next(simulation.others())}")
    if lost:
        sys.exit(FAILED)


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
    ]


def _simulated(
    name: str, world: World, planned: Planned, scenario: Scenario, *, repeat: int, seed: int
) -> Simulated:
    from webhook.questions.offline import unknown_labels, unknown_values
    from webhook.simulation.placer import Placer
    from webhook.simulation.play import Play
    from webhook.simulation.summary import Simulated

    templates = planned.templates(world.policies.sources)
    print_notes(unknown_labels(world.policies, templates, world.namespaces, "--namespaces"))
    print_notes(unknown_values(world.policies, templates))
    placer = Placer(world, planned.run, scenario.spec.pools)
    endings = []
    with click.progressbar(
        range(repeat), label=name, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as repetitions:
        for repetition in repetitions:
            play = Play(placer, scenario.spec, seed=seed, repetition=repetition)
            endings.append(play.ending())
    return Simulated(name, endings)


def _lines(
    scenario: Scenario, sets: Sequence[Simulated], seed: int, *, events: bool
) -> Iterator[str]:
    from webhook.simulation.play import ASSUMPTIONS
    from webhook.simulation.summary import HEAD, differences, lines_of
    from webhook.text.layout import table

    if events:
        for simulation in sets:
            yield f"{simulation.policies}, the first repetition:"
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
