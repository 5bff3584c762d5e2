"""`fairlead serve`: run the admission webhook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from webhook.cli.exit_codes import FAILED
from webhook.cli.short_help import Command
from webhook.server.settings import ServeSettings
from webhook.settings import settings_options

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.server.cluster_facts import ClusterFacts

# What is watched in a cluster, by parameter: there is none with --namespaces.
_WATCHED: Final = {
    "policies_from_cluster": "--policies-from-cluster",
    "tls_secret": "--tls-secret",
    "webhook_configuration": "--webhook-configuration",
    "nodes": "--nodes",
}


@click.command("serve", cls=Command)
@settings_options(ServeSettings)
def command(settings: ServeSettings) -> None:
    """Serve the mutating admission webhook for pods.

    The webhook reloads policies when their files or objects change. If the new policy set has an
    error, the webhook keeps the last good set, and reports the error in its log, metrics and
    readiness. It is not ready until it has a good set and knows all namespaces. After SIGTERM or
    SIGINT it stops when the grace period is over and every request is answered. A second signal
    stops it immediately, with exit code 1.

    \b
    Examples:
      # In a cluster, with the certificate that `fairlead controller --certificates` manages:
      fairlead serve --policies-from-cluster --tls-secret fairlead-webhook-tls
      # With a certificate from a mounted Secret, and client certificates:
      fairlead serve --policies /etc/fairlead/policies --cert /tls/tls.crt --key /tls/tls.key \\
        --client-ca /callers/ca.crt --client-name api-server
      # On this machine, without a cluster; `fairlead sandbox up` has one:
      fairlead serve --policies policies/ --self-signed --ca-out ca.crt --namespaces cluster.yaml
    """
    _check(settings)

    from webhook.server import webhook_process
    from webhook.server.logs import configure

    configure(settings.log_level)
    facts = _read_facts(settings.cluster_file) if settings.cluster_file else None
    if not webhook_process.run(settings, facts):
        sys.exit(FAILED)


def _read_facts(path: Path) -> ClusterFacts:
    from webhook.questions.objects import read_cluster_file
    from webhook.server.cluster_facts import ClusterFacts

    file = read_cluster_file(path)
    reason = f"{len(file.namespaces)} from {path}"
    return ClusterFacts(file, lambda: file.default_priority_class, reason)


def _check(settings: ServeSettings) -> None:
    if bool(settings.policies) == settings.policies_from_cluster:
        raise click.UsageError(
            "want policies: --policies DIR, or --policies-from-cluster, and not both"
        )
    if settings.kubeconfig and settings.cluster_file:
        raise click.UsageError("--kubeconfig or --namespaces: a cluster or a file, not both")
    _check_certificate(settings)
    for parameter, option in _WATCHED.items():
        if getattr(settings, parameter) and settings.cluster_file:
            raise click.UsageError(f"{option} is watched in a cluster: not with --namespaces")
    if settings.events and settings.cluster_file:
        raise click.UsageError("--events are written to a cluster: not with --namespaces")
    most, in_flight = settings.max_connections, settings.max_in_flight
    if most <= in_flight:
        raise click.UsageError(
            f"--max-connections {most}: want more than --max-in-flight {in_flight}"
        )
    if settings.client_names and not settings.client_ca:
        raise click.UsageError("--client-name requires --client-ca")


def _check_certificate(settings: ServeSettings) -> None:
    cert, key = bool(settings.cert), bool(settings.key)
    sources = (cert or key, settings.tls_secret is not None, settings.self_signed)
    if sum(sources) != 1 or cert != key:
        raise click.UsageError(
            "want a certificate: --cert and --key, or --tls-secret, or --self-signed"
        )
    if (settings.extra_names or settings.ca_out) and not settings.self_signed:
        raise click.UsageError("--name and --ca-out require --self-signed")
