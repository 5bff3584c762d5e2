"""`fairlead serve`: run the admission webhook."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from webhook.cli.object_name import ObjectName

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("serve")
@click.option(
    "--policies",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder of policy files, read with its sub-folders and watched; a mounted ConfigMap too.",
)
@click.option(
    "--kubeconfig",
    type=_FILE,
    metavar="FILE",
    help="The cluster whose namespaces and priority classes are watched. Default: $KUBECONFIG, "
    "else the cluster that this pod runs in.",
)
@click.option(
    "--namespaces",
    "cluster_file",
    type=_FILE,
    metavar="FILE",
    help="Without a cluster: Namespace and PriorityClass objects as YAML, read once.",
)
@click.option("--host", default="", help="Address to listen on. Default: every one, IPv4 and IPv6.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8443,
    show_default=True,
    help="HTTPS port, for POST /mutate. 0 takes a free one; the log says which.",
)
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    default=8081,
    show_default=True,
    help="Plain HTTP port, for /livez, /readyz and /metrics.",
)
@click.option("--cert", type=_FILE, metavar="FILE", help="Certificate chain as PEM, watched.")
@click.option("--key", type=_FILE, metavar="FILE", help="Its private key as PEM, watched.")
@click.option(
    "--tls-secret",
    type=ObjectName(),
    help="Secret of type kubernetes.io/tls to serve with, watched: a new certificate is on the "
    "wire at once. Default namespace: the pod's own.",
)
@click.option(
    "--self-signed",
    is_flag=True,
    help="For development: make an authority and a certificate for localhost, for this process.",
)
@click.option(
    "--name",
    "extra_names",
    multiple=True,
    metavar="NAME",
    help="With --self-signed: one more DNS name or IP address to be reached by. Repeatable.",
)
@click.option(
    "--ca-out",
    type=_FILE,
    metavar="FILE",
    help="With --self-signed: write the authority's certificate here, for the API server's "
    "caBundle.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="After SIGTERM, how long to answer on. Longer than the cluster takes to send its calls "
    "elsewhere (a second or two), for a refused connection is not retried; and less than the "
    "pod's terminationGracePeriodSeconds.",
)
@click.option(
    "--max-in-flight",
    type=click.IntRange(min=1),
    default=600,
    show_default=True,
    help="With so many requests unanswered, tell the next to come again in a second. (One API "
    "server has at most 200 writes in flight unless told otherwise; this is enough for three.)",
)
@click.option(
    "--poll-interval",
    type=click.FloatRange(min=0.05),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often policies and certificates are looked at.",
)
@click.option(
    "--default-toleration-seconds",
    type=click.IntRange(min=0),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="What the API server gives pods for not-ready and unreachable nodes, which is nobody's "
    "word: its --default-not-ready-toleration-seconds.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="At debug there is one line a decision.",
)
def command(
    policies: Path,
    kubeconfig: Path | None,
    cluster_file: Path | None,
    host: str,
    port: int,
    health_port: int,
    cert: Path | None,
    key: Path | None,
    tls_secret: tuple[str, str] | None,
    self_signed: bool,
    extra_names: tuple[str, ...],
    ca_out: Path | None,
    grace: float,
    max_in_flight: int,
    poll_interval: float,
    default_toleration_seconds: int,
    log_level: str,
) -> None:
    """Serve the mutating admission webhook for pods.

    Policies are read again whenever their files change, as a whole or not at all: if the new set
    has an error, the last good one serves on, and log, metrics and readiness say so. Before the
    first good set, and before all namespaces are known, the process is not ready. It stops after
    SIGTERM or SIGINT, once the grace time is over and every request is answered; a second signal
    ends it at once, with exit code 1.

    \b
    In a cluster, with the certificate that `fairlead controller --certificates` keeps:
      fairlead serve --policies /etc/fairlead/policies --tls-secret fairlead-webhook-tls

    \b
    With a certificate from a mounted Secret:
      fairlead serve --policies /etc/fairlead/policies --cert /tls/tls.crt --key /tls/tls.key

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
    if kubeconfig and cluster_file:
        raise click.UsageError("--kubeconfig or --namespaces: a cluster or a file, not both")
    sources = (bool(cert or key), tls_secret is not None, self_signed)
    if sum(sources) != 1 or bool(cert) != bool(key):
        raise click.UsageError(
            "want a certificate: --cert and --key, or --tls-secret, or --self-signed"
        )
    if tls_secret and cluster_file:
        raise click.UsageError("--tls-secret is watched in a cluster: not with --namespaces")
    if (extra_names or ca_out) and not self_signed:
        raise click.UsageError("--name and --ca-out go with --self-signed")

    from webhook.cli import serving
    from webhook.cli.self_signed import SelfSigned
    from webhook.cli.serving_certificates import SecretName
    from webhook.server.logs import configure
    from webhook.server.tls import CertificateFiles

    configure(log_level)
    settings = serving.Settings(
        policies=policies,
        certificate=(
            CertificateFiles(cert, key)
            if cert and key
            else SecretName(*tls_secret)
            if tls_secret
            else SelfSigned(extra_names, ca_out)
        ),
        kubeconfig=kubeconfig,
        cluster_file=cluster_file,
        host=host,
        port=port,
        health_port=health_port,
        grace=grace,
        max_in_flight=max_in_flight,
        poll_interval=poll_interval,
        default_toleration_seconds=default_toleration_seconds,
    )
    if not serving.run(settings):
        sys.exit(1)
