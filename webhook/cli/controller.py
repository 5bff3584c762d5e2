"""`fairlead controller`: run the controller of Runs."""

from __future__ import annotations

import socket
import sys
import uuid
from pathlib import Path

import click

from webhook.backoff import INCIDENT_WINDOW, RESTART_DELAYS, Delays
from webhook.cli.certificate_options import certificate_options
from webhook.cli.number import Number
from webhook.cli.policy_status_options import policy_status_options


@click.command("controller")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The cluster. Default: $KUBECONFIG, else the cluster that this pod runs in.",
)
@click.option(
    "--namespace",
    default="",
    metavar="NAME",
    help="Work in one namespace only. Default: in all of them.",
)
@click.option(
    "--cluster-domain",
    default="",
    metavar="DOMAIN",
    help="Appended to the replicas' addresses, such as cluster.local. Default: nothing, and the "
    "search list of the pods' resolver finds them.",
)
@click.option(
    "--lease-namespace",
    default="",
    metavar="NAME",
    help="Where the Lease is that says who leads. Default: --namespace, else the pod's own, else "
    "default.",
)
@click.option(
    "--lease-name",
    default="fairlead-controller",
    show_default=True,
    metavar="NAME",
    help="Name of that Lease. Controllers of different namespaces need different ones.",
)
@click.option(
    "--identity",
    default="",
    metavar="NAME",
    help="Who this process is in the Lease. Default: the host's name and a random part.",
)
@click.option(
    "--lease-duration",
    type=Number(1, 3600),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="After so long without a renewal another process takes the Lease.",
)
@click.option(
    "--renew-deadline",
    type=Number(0.5, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="After so long without a renewal the holder writes nothing more. Less than the duration.",
)
@click.option(
    "--retry-period",
    type=Number(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the Lease is renewed, or looked at.",
)
@click.option(
    "--no-leader-election",
    is_flag=True,
    help="For development: lead at once, and ask nobody.",
)
@click.option(
    "--qps",
    type=Number(1, 100_000),
    default=300.0,
    show_default=True,
    help="Writes a second to the API server. It says itself when that is too many.",
)
@click.option(
    "--burst",
    type=click.IntRange(min=1),
    default=600,
    show_default=True,
    help="Writes at once after a quiet time.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Runs that are worked on at the same time.",
)
@click.option(
    "--restart-backoff-first",
    type=Number(0.1, 86400),
    default=RESTART_DELAYS.first,
    show_default=True,
    metavar="SECONDS",
    help="How long a replica waits before its first restart after a failure. The wait doubles with "
    "each failure. After a disruption it starts again at once, and after further ones as after "
    "failures.",
)
@click.option(
    "--restart-backoff-longest",
    type=Number(0.1, 86400),
    default=RESTART_DELAYS.longest,
    show_default=True,
    metavar="SECONDS",
    help="The longest wait before a restart. Not less than --restart-backoff-first.",
)
@click.option(
    "--incident-window",
    type=Number(0, INCIDENT_WINDOW),
    default=INCIDENT_WINDOW,
    show_default=True,
    metavar="SECONDS",
    help="How long a failure is not charged to backoffLimit, since a node that was lost may be the "
    "cause. Restarts do not wait for it. Only where a node of the run may be interrupted.",
)
@click.option(
    "--nodes/--no-nodes",
    default=None,
    help="Watch the nodes and capacity classes of the cluster, to tell of nodes that are lost and "
    "to replace their pods. Default: yes, unless --namespace is given, for a Role does not allow "
    "it.",
)
@certificate_options
@policy_status_options
@click.option(
    "--webhook-configuration",
    default="",
    metavar="NAME",
    help="Put the rules of this MutatingWebhookConfiguration back when the time of `fairlead "
    "disable` is over. Default: leave it alone.",
)
@click.option("--host", default="", help="Address to listen on. Default: every one, IPv4 and IPv6.")
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    default=8082,
    show_default=True,
    help="Plain HTTP port, for /livez, /readyz and /metrics. 0 takes a free one; the log says "
    "which.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
def command(
    kubeconfig: Path | None,
    namespace: str,
    cluster_domain: str,
    lease_namespace: str,
    lease_name: str,
    identity: str,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    no_leader_election: bool,
    qps: float,
    burst: int,
    workers: int,
    restart_backoff_first: float,
    restart_backoff_longest: float,
    incident_window: float,
    nodes: bool | None,
    certificates: bool,
    certificate_settle: float,
    certificate_names: tuple[str, ...],
    policy_status: bool | None,
    policy_status_interval: float,
    webhook_replicas: tuple[tuple[str, int], ...],
    webhook_configuration: str,
    host: str,
    health_port: int,
    log_level: str,
) -> None:
    """Run the controller, which makes replica pods of Runs and looks after them.

    Several may run: one leads, the others watch and take over when it goes. It stops after SIGTERM
    or SIGINT, gives the Lease back, and exits with code 0; what it was doing the next one goes on
    with. Pods are placed by the admission webhook (`fairlead serve`), as any other's are. With
    --certificates it keeps the certificates of that webhook too, while it leads. Of policies,
    capacity classes and exceptions that are objects of the cluster it writes the status.

    \b
    In a cluster:
      fairlead controller --certificates --webhook-configuration fairlead

    \b
    On this machine, against a sandbox (`fairlead sandbox up` does it):
      fairlead controller --no-leader-election
      curl http://localhost:8082/readyz
    """
    if not retry_period < renew_deadline < lease_duration:
        raise click.UsageError(
            "want --retry-period < --renew-deadline < --lease-duration: the holder has to stop "
            "writing before another may begin"
        )
    if restart_backoff_first > restart_backoff_longest:
        raise click.UsageError(
            f"{_written('restart_backoff_first')} is more than "
            f"{_written('restart_backoff_longest')}: want first <= longest"
        )
    from webhook.cli import controlling
    from webhook.cli.keeping import Certificates
    from webhook.cli.policy_status import PolicyStatus
    from webhook.run.counting import RestartTerms
    from webhook.server.logs import configure

    configure(log_level)
    reports = not namespace if policy_status is None else policy_status
    settings = controlling.Settings(
        kubeconfig=kubeconfig,
        namespace=namespace,
        cluster_domain=cluster_domain,
        lease_namespace=lease_namespace or namespace,
        lease_name=lease_name,
        identity=identity or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}",
        lease_duration=lease_duration,
        renew_deadline=renew_deadline,
        retry_period=retry_period,
        election=not no_leader_election,
        qps=qps,
        burst=burst,
        workers=workers,
        nodes=not namespace if nodes is None else nodes,
        terms=RestartTerms(Delays(restart_backoff_first, restart_backoff_longest), incident_window),
        certificates=Certificates(certificate_settle, certificate_names) if certificates else None,
        policy_status=PolicyStatus(policy_status_interval, webhook_replicas) if reports else None,
        webhook_configuration=webhook_configuration,
        host=host,
        health_port=health_port,
    )
    if not controlling.run(settings):
        sys.exit(1)


def _written(parameter: str) -> str:
    context = click.get_current_context()
    text = f"--{parameter.replace('_', '-')} {context.params[parameter]:g}"
    is_default = context.get_parameter_source(parameter) is click.core.ParameterSource.DEFAULT
    return f"{text} (the default)" if is_default else text
