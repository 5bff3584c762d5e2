"""`fairlead webhook certs` and `rotate`: show and renew the webhook's certificates."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from webhook import names
from webhook.api_paths import kubectl_name
from webhook.cli.exit_codes import FAILED, UNKNOWN, errors_exit
from webhook.cli.options import cluster_options, namespace_option, timeout_option
from webhook.cli.output import TABLE_FORMS, output_option, print_result
from webhook.cli.short_help import Command
from webhook.settings import ObjectName

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.certificates.certificate_objects import Installation
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig


def installation_options(function: Callable[..., None]) -> Callable[..., None]:
    """--namespace and --webhook-configuration."""
    namespace = namespace_option("Where Fairlead is installed.", names.NAMESPACE)
    configuration = click.option(
        "--webhook-configuration",
        type=ObjectName(),
        default=names.WEBHOOK_CONFIGURATION,
        show_default=True,
        metavar="NAME",
        help="The webhook configurations, of both kinds, that the bundle is published in.",
    )
    decorated: Callable[..., None] = namespace(configuration(function))
    return decorated


def installation_of(namespace: str, configuration: str) -> Installation:
    """Return the installation that the options name."""
    from webhook.controller.certificates.certificate_objects import Installation, both

    return Installation(namespace, places=both(configuration))


@click.command("rotate", cls=Command)
@click.option(
    "--authority",
    is_flag=True,
    help="Rotate the authority too, and the leaf with it. Default: the leaf only.",
)
@click.option("--wait", is_flag=True, help="Show the progress until the rotation is done.")
@timeout_option("10m", more=" The rotation continues afterwards.")
@installation_options
@cluster_options
def rotate(
    authority: bool,
    wait: bool,
    timeout: timedelta,
    namespace: str,
    webhook_configuration: str,
    kubeconfig: Kubeconfig,
) -> None:
    """Request a new leaf or a new authority from the controller.

    The request is an annotation on the Secret. No client is rejected meanwhile: a new authority
    signs when every API server trusts it, and the old one is removed when every replica serves the
    new leaf, after about a minute. Use this command if the authority's key was exposed.

    \b
    Examples:
      fairlead webhook rotate
      fairlead webhook rotate --authority --wait

    \b
    Exit codes:
      0  requested; with --wait: done
      1  no such Secret, or others manage it
      2  wrong usage, or the cluster did not answer or refused
      3  the time is over; the rotation goes on
    """
    from webhook.questions.certificates.request import ask, progress

    installation = installation_of(namespace, webhook_configuration)
    what = "authority" if authority else "leaf"

    async def request(client: Client) -> None:
        before = await ask(client, installation, datetime.now(UTC), authority=authority)
        click.echo(f"requested a new {what}")
        if not wait:
            click.echo("`fairlead webhook certs` shows the progress.")
            return
        async for line in progress(client, installation, before, timeout, authority=authority):
            click.echo(line)
        click.echo(f"done: a new {what} is in use")

    kubeconfig.ask(request)


@click.command("certs", cls=Command)
@installation_options
@cluster_options
@output_option(
    "wide: with the names of the leaf, and who signed it; json and yaml: whole serial numbers, and "
    "times as they are; name: the Secrets.",
    TABLE_FORMS,
    report="CertificateStatus",
    tables=True,
)
def command(
    namespace: str,
    webhook_configuration: str,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Show the webhook's certificates: the authority, the leaf, and every caBundle.

    The authority's Secret holds its key. If you may not read it, its phase is unknown, and
    everything else is shown. The command never prints a key.

    \b
    Phases of the authority:
      steady     nothing is under way
      staged     a new authority exists, but not in every caBundle yet
      published  it is in every caBundle; every API server gets time to see it
      retiring   the new authority signs; the old one stays until every replica serves the new leaf
      absent     there is no readable authority

    \b
    Examples:
      fairlead webhook certs
      fairlead webhook certs -o json | jq -r .leaf.expires

    \b
    Exit codes:
      0  no problem found
      1  something is wrong
      2  wrong usage, or the cluster did not answer
    """
    from webhook.questions.certificates.report import document, lines, read_state

    installation = installation_of(namespace, webhook_configuration)
    with errors_exit(UNKNOWN):
        state = kubeconfig.ask(lambda client: read_state(client, installation))
    now = datetime.now(UTC)
    shown = document(state, now)
    print_result(
        output,
        json=lambda: shown,
        text=lambda: lines(shown, now, wide=output == "wide"),
        names=lambda: [
            kubectl_name("", "Secret", certificate)
            for certificate in (installation.authority, installation.serving)
        ],
    )
    if shown["findings"]:
        sys.exit(FAILED)
