"""`fairlead serve`: run the admission webhook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from webhook.cli.serve_options import serve_options
from webhook.cli.serve_usage import check_usage

if TYPE_CHECKING:
    from pathlib import Path


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
