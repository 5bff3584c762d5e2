"""What `fairlead run create` does in the cluster: preview, submit, follow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from webhook import names
from webhook.cli.exit_codes import DONE, FAILED
from webhook.cli.output import (
    output_option,
    print_aside,
    print_error,
    print_json,
    print_notes,
    print_yaml,
    say,
)
from webhook.cli.run.cluster import target_options
from webhook.errors import FairleadError, UnreadableInput
from webhook.run_client.rows import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.run.model import Run


def following_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add --wait and --logs of a command that creates a Run, its cluster, and how it is printed."""
    wait = click.option(
        "--wait", is_flag=True, help="Wait until the Run ends; exit with 1 if it fails."
    )
    logs = click.option("--logs", is_flag=True, help="As --wait, with the logs of all replicas.")
    output = output_option("Print the Run in this form.", ("name", "yaml", "json"), default=None)
    return wait(logs(target_options(output(function))))


async def submit_run(
    client: Client, raw: dict[str, Any], namespace: str, files: Mapping[str, bytes]
) -> dict[str, Any]:
    """Create the Run, and warn if nothing would place its pods. Raises ClusterError."""
    from webhook.evaluation.sending import NoConfiguration
    from webhook.questions.live.missing_stamp import read_configuration
    from webhook.run_client.submit import missing_queues, submit

    asks = names.CAPACITY in str(raw["spec"])
    if asks and isinstance(await read_configuration(client), NoConfiguration):
        why = "this cluster has no webhook of Fairlead, which would place its pods so"
        print_notes([f"the run asks for capacity classes, and gets any nodes: {why}"])
    if names.KUEUE_QUEUE in (raw["metadata"].get("labels") or {}):
        print_notes(filter(None, [await missing_queues(client)]))
    return await submit(client, raw, namespace, files)


async def read_surroundings(client: Client, run: Run) -> tuple[World, list[str]]:
    """Return what the cluster's policies decide on the Run's pods by, and what is not known of it.

    Raises UnreadableInput if the webhook has its policies from files, which cannot be read here.
    """
    from webhook.decision.stamp import HASH_LENGTH
    from webhook.evaluation.plugins import merge_inputs
    from webhook.questions.cluster_surroundings import read_beside, read_policies, read_world
    from webhook.questions.live.live_answers import node_list
    from webhook.questions.live.served_policies import another_set, ask_replicas, not_served
    from webhook.questions.where import CLUSTER

    notes: list[str] = []
    policies = (await read_policies(client)).policies
    policies_hash = policies.hash[:HASH_LENGTH]
    if another := await another_set(client, policies_hash, await ask_replicas(client)):
        cure = "fairlead preview -o pods -f FILE --policies DIR; then leave out --preview"
        raise UnreadableInput([f"{another}, which --preview cannot read: {cure}"])
    notes += await not_served(client, policies, ())
    nodes = await node_list(client, CLUSTER)
    world = await read_world(client, policies, [run.namespace], nodes, notes)
    beside = await read_beside(client, notes, policies.sources)
    return replace(world, plugins=merge_inputs(beside, world.plugins)), notes


def show_preview(run: Run, place: str, world: World, *, err: bool) -> bool:
    """Show the placement of the Run's pods; return whether none would be rejected or refused.

    err: standard output is for the Run.
    """
    from webhook.questions.decisions import asked_alone, unknown_facts
    from webhook.run.plan import plan
    from webhook.run_client.preview_report import groups, lines
    from webhook.run_client.run_files import Planned

    planned = Planned(place, run, None if run.spec.delegated else plan(run))
    run_groups = groups(planned, world)
    replicas = [group.replicas for group in run_groups]
    print_notes([*unknown_facts(replicas), *asked_alone(replicas)])
    for line in lines(planned, run_groups):
        click.echo(line, err=err)
    reasons = [reason for group in run_groups for reason in group.reasons]
    for reason in dict.fromkeys(reasons):
        say("rejected", reason)
    return not reasons


async def conclude(
    client: Client, stored: dict[str, Any], output: str | None, *, wait: bool, logs: bool
) -> int:
    """Print the Run that was created, and follow it if that is wanted; return the exit code."""
    print_created(stored, output)
    metadata = stored["metadata"]
    if wait or logs:
        return await _follow(client, metadata["namespace"], metadata["name"], logs=logs)
    return DONE


async def _follow(client: Client, namespace: str, name: str, *, logs: bool) -> int:
    """Wait until the Run ends; return the exit code."""
    import asyncio

    from webhook.cli.run.logs import print_logs
    from webhook.run_client.following import follow
    from webhook.run_client.log_sources import LogSelection

    async def show() -> None:
        whole = LogSelection(None, None, "")
        try:
            await print_logs(client, namespace, name, whole, follow=True, tail=None)
        except FairleadError as error:
            # The Run goes on, and its end is what is waited for.
            print_error(error)

    showing = asyncio.create_task(show()) if logs else None
    try:
        ending = await follow(
            client, namespace, name, lambda status: status.ended, report=print_aside
        )
        if showing and ending.how != "gone":
            await showing
    finally:
        if showing:
            showing.cancel()
    if ending.how == "gone":
        say("error", f"run {name} was deleted")
        return FAILED
    return DONE if ending.status.phase == "Succeeded" else FAILED


def print_created(
    raw: dict[str, Any], output: str | None, beside: Sequence[dict[str, Any]] = ()
) -> None:
    """Print the Run, and as YAML or JSON what has to be created beside it."""
    if output == "yaml":
        print_yaml([*beside, raw])
    elif output == "json":
        items = {"apiVersion": "v1", "kind": "List", "items": [*beside, raw]}
        print_json(items if beside else raw)
    else:
        click.echo(f"{reference(raw)}{'' if output == 'name' else ' created'}")
