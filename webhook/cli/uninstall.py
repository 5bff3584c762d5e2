"""`fairlead uninstall`: take Fairlead out of a cluster."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import click

from webhook import names
from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.number import Number
from webhook.cli.output_option import output_option

if TYPE_CHECKING:
    from pathlib import Path


@click.command("uninstall")
@click.option(
    "--delete-runs",
    is_flag=True,
    help="Also delete the definition of Runs, and with it every Run and all that it owns.",
)
@click.option(
    "--delete-policies",
    is_flag=True,
    help="Also delete the definitions of policies, capacity classes and exceptions, and with them "
    "all of these that are objects of the cluster.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    type=Number(1, 86400),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="For all that is waited for.",
)
@cluster_options
@output_option("What to print. Progress goes to stderr.")
def command(
    delete_runs: bool,
    delete_policies: bool,
    yes: bool,
    timeout: float,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Take Fairlead out of the cluster, whether install or kubectl put it there.

    The webhook configurations go first, and nothing else before the API server has forgotten them:
    no pod is refused on the way, and no policy. Then all objects of the manifests, the
    certificates' Secrets and the namespace, unless something of somebody else's is in it. Runs and
    their definition stay, with --delete-runs they go; policies, classes and exceptions stay, with
    --delete-policies they go. Pods keep their placement. Policies in a ConfigMap, where they are
    files, go in any case: `kubectl -n fairlead-system get configmap fairlead-policies -o yaml`
    saves them.

    \b
    Examples:
      fairlead uninstall
      fairlead uninstall --yes --delete-runs --delete-policies

    \b
    Exit codes:
      0  gone, but for what it says
      1  not, or not asked for: nobody said yes
      2  wrong usage
    """
    asyncio.run(_run(delete_runs, delete_policies, yes, timeout, kubeconfig, context, output))


async def _run(
    delete_runs: bool,
    delete_policies: bool,
    yes: bool,
    timeout: float,  # noqa: ASYNC109  (of several waits together)
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    from webhook.installation.overlays import every_key
    from webhook.installation.patience import Patience
    from webhook.installation.uninstall import uninstall
    from webhook.sandbox.progress import Lines

    async with client_of(kubeconfig, context) as client:
        # Before anybody is asked: is there a cluster at all?
        version = await client.get("/version")
        if not yes:
            runs = ", every Run with all that it owns," if delete_runs else ""
            runs += ", every policy, class and exception in the cluster," if delete_policies else ""
            click.confirm(
                f"Delete Fairlead{runs} and the ConfigMap {names.NAMESPACE}/"
                f"{names.POLICIES_CONFIG_MAP}, if policies are files there "
                f"(Kubernetes {version.get('gitVersion')})?",
                abort=True,
                err=True,
            )
        found = await uninstall(
            client,
            every_key(),
            Patience(timeout),
            Lines(sys.stderr),
            delete_runs=delete_runs,
            delete_policies=delete_policies,
        )
    if output == "json":
        document = {"deleted": [str(key) for key in found.deleted], "left": list(found.left)}
        click.echo(json.dumps(document, indent=2))
        return
    for key in found.deleted:
        click.echo(f"deleted {key}")
    for left in found.left:
        click.echo(f"left: {left}")
    if not found.deleted:
        click.echo("there was nothing of Fairlead's to delete")
