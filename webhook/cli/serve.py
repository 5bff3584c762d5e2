"""`fairlead serve`: run the admission webhook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.serve_options import serve_options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# What is watched in a cluster, by parameter: there is none with --namespaces.
_WATCHED: Final = {
    "policies_from_cluster": "--policies-from-cluster",
    "tls_secret": "--tls-secret",
    "webhook_configuration": "--webhook-configuration",
    "nodes": "--nodes",
}


@click.command("serve")
@serve_options
def command(
    policies: Path | None,
    policies_from_cluster: bool,
    kubeconfig: Path | None,
    cluster_file: Path | None,
    host: str,
    port: int,
    health_port: int,
    cert: Path | None,
    key: Path | None,
    tls_secret: tuple[str, str] | None,
    service: tuple[str, str],
    webhook_configuration: str,
    tls_min_version: str,
    client_ca: Path | None,
    client_names: tuple[str, ...],
    self_signed: bool,  # noqa: ARG001 (check_usage has seen that it is what remains)
    extra_names: tuple[str, ...],
    ca_out: Path | None,
    grace: float,
    max_in_flight: int,
    max_connections: int,
    poll_interval: float,
    default_toleration_seconds: int,
    events: bool,
    nodes: bool,
    log_level: str,
) -> None:
    """Serve the mutating admission webhook for pods.

    Policies are read again whenever their files or objects change, as a whole or not at all: if
    the new set has an error, the last good one serves on, and log, metrics and readiness say so.
    Before the first good set, and before all namespaces are known, the process is not ready. It
    stops after SIGTERM or SIGINT, once the grace time is over and every request is answered; a
    second signal ends it at once, with exit code 1.

    \b
    In a cluster, with the certificate that `fairlead controller --certificates` keeps:
      fairlead serve --policies /etc/fairlead/policies --tls-secret fairlead-webhook-tls

    \b
    With the policies that the cluster holds (kubectl get pp,cc,pe):
      fairlead serve --policies-from-cluster --tls-secret fairlead-webhook-tls

    \b
    With a certificate from a mounted Secret, for callers that show one of their own:
      fairlead serve --policies /etc/fairlead/policies --cert /tls/tls.crt --key /tls/tls.key \\
        --client-ca /callers/ca.crt --client-name api-server

    \b
    On this machine, against a sandbox (`fairlead sandbox up` does all of it):
      fairlead serve --policies policies/ --self-signed --ca-out ca.crt

    \b
    Without any cluster:
      kubectl get namespaces,priorityclasses -o yaml > cluster.yaml
      fairlead serve --policies policies/ --self-signed --ca-out ca.crt --namespaces cluster.yaml
      curl --cacert ca.crt https://localhost:8443/mutate \\
        -H 'Content-Type: application/json' -d @review.json
      curl http://localhost:8081/readyz
    """
    check_usage(click.get_current_context().params)

    from ssl import TLSVersion

    from webhook.cli import serving
    from webhook.cli.self_signed import SelfSigned
    from webhook.cli.serving_certificates import SecretName
    from webhook.cli.serving_handshake import Reached
    from webhook.server.files import CertificateFiles
    from webhook.server.logs import configure

    configure(log_level)
    settings = serving.Settings(
        policies=None if policies_from_cluster else policies,
        certificate=(
            CertificateFiles(cert, key)
            if cert and key
            else SecretName(*tls_secret)
            if tls_secret
            else SelfSigned(extra_names, ca_out)
        ),
        reached=Reached(
            service[0] or (tls_secret[0] if tls_secret else ""), service[1], webhook_configuration
        ),
        client_ca=client_ca,
        client_names=frozenset(client_names),
        tls_minimum=TLSVersion.TLSv1_2 if tls_min_version == "1.2" else TLSVersion.TLSv1_3,
        kubeconfig=kubeconfig,
        cluster_file=cluster_file,
        host=host,
        port=port,
        health_port=health_port,
        grace=grace,
        max_in_flight=max_in_flight,
        max_connections=max_connections,
        poll_interval=poll_interval,
        default_toleration_seconds=default_toleration_seconds,
        events=events,
        nodes=nodes,
    )
    if not serving.run(settings):
        sys.exit(1)


def check_usage(given: Mapping[str, Any]) -> None:
    """Raise a UsageError if parameters, by name, exclude each other, or one is missing."""
    if bool(given["policies"]) == given["policies_from_cluster"]:
        raise click.UsageError(
            "want policies: --policies DIR, or --policies-from-cluster, and not both"
        )
    if given["kubeconfig"] and given["cluster_file"]:
        raise click.UsageError("--kubeconfig or --namespaces: a cluster or a file, not both")
    _check_certificate(given)
    for parameter, option in _WATCHED.items():
        if given[parameter] and given["cluster_file"]:
            raise click.UsageError(f"{option} is watched in a cluster: not with --namespaces")
    if given["events"] and given["cluster_file"]:
        raise click.UsageError("--events are written to a cluster: not with --namespaces")
    most, in_flight = given["max_connections"], given["max_in_flight"]
    if most <= in_flight:
        raise click.UsageError(
            f"--max-connections {most}: want more than --max-in-flight {in_flight}"
        )
    if given["client_names"] and not given["client_ca"]:
        raise click.UsageError("--client-name goes with --client-ca")


def _check_certificate(given: Mapping[str, Any]) -> None:
    cert, key = bool(given["cert"]), bool(given["key"])
    sources = (cert or key, given["tls_secret"] is not None, given["self_signed"])
    if sum(sources) != 1 or cert != key:
        raise click.UsageError(
            "want a certificate: --cert and --key, or --tls-secret, or --self-signed"
        )
    if (given["extra_names"] or given["ca_out"]) and not given["self_signed"]:
        raise click.UsageError("--name and --ca-out go with --self-signed")
