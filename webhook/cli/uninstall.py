"""`fairlead uninstall`: remove Fairlead from a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook import names
from webhook.api_paths import VERSION
from webhook.cli.options import cluster_options, progress_option, timeout_option
from webhook.cli.output import confirm, output_option, print_result
from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from datetime import timedelta

    from webhook.installation.uninstall import UninstallResult
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.progress import Progress


@click.command("uninstall", cls=Command)
@click.option(
    "--delete-runs",
    is_flag=True,
    help="Also delete the CRD of Runs, and with it all Runs and their objects.",
)
@click.option(
    "--delete-policies",
    is_flag=True,
    help="Also delete the CRDs of policies, capacity classes, exceptions and sources, and with "
    "them all such objects.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would be deleted and what would stay.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@timeout_option()
@cluster_options
@progress_option()
@output_option("What to print. Progress goes to stderr.", report="Uninstallation")
def command(
    delete_runs: bool,
    delete_policies: bool,
    dry_run: bool,
    yes: bool,
    timeout: timedelta,
    kubeconfig: Kubeconfig,
    progress: Progress,
    output: str,
) -> None:
    """Remove Fairlead from the cluster, whether install or kubectl created it.

    The command refuses objects that Helm, Argo CD or Flux manage, and names the command that
    removes them.

    The command deletes the webhook configurations first, and waits until the API server no longer
    uses them, so that no pod and no policy is rejected meanwhile. Then it deletes all objects of
    the manifests, the certificates' Secrets, and the namespace if it has no other objects. Pods
    keep their placement. Runs, policies, classes, exceptions and sources stay, unless you give
    --delete-runs or --delete-policies. Policies in the ConfigMap are always deleted; to save them:
    `kubectl -n fairlead-system get configmap fairlead-policies -o yaml`.

    \b
    Examples:
      fairlead uninstall --dry-run
      fairlead uninstall
      fairlead uninstall --yes --delete-runs --delete-policies

    \b
    Exit codes:
      0  removed; the output names what is left
      1  not removed, or not confirmed
      2  wrong usage, or the cluster did not answer or refused
      3  the time is over
      130  ended by Ctrl-C
    """
    from webhook.installation.apply import Patience
    from webhook.installation.uninstall import uninstall

    async def remove(client: Client) -> UninstallResult:
        # Before anybody is asked: is there a cluster at all?
        version = await client.get(VERSION)

        def agree() -> None:
            if yes or dry_run:
                return
            runs = ", every Run with all that it owns," if delete_runs else ""
            runs += ", every policy, class and exception in the cluster," if delete_policies else ""
            confirm(
                f"Delete Fairlead{runs} and the ConfigMap {names.NAMESPACE}/"
                f"{names.POLICIES_CONFIG_MAP}, if policies are files there "
                f"(Kubernetes {version.get('gitVersion')})?"
            )

        return await uninstall(
            client,
            Patience(timeout.total_seconds(), progress),
            progress,
            agree,
            delete_runs=delete_runs,
            delete_policies=delete_policies,
            dry_run=dry_run,
        )

    result = kubeconfig.ask(remove)
    deleted = [str(key) for key in result.deleted]
    print_result(
        output,
        json=lambda: {"dryRun": dry_run, "deleted": deleted, "left": list(result.left)},
        text=lambda: (
            *(f"{'would delete' if dry_run else 'deleted'} {key}" for key in deleted),
            *(f"left: {left}" for left in result.left),
            *(() if deleted else ("there was nothing of Fairlead's to delete",)),
        ),
    )
