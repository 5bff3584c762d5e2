"""The settings of the controller, which are the options of `fairlead controller`."""

from __future__ import annotations

import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

import click

from webhook.backoff import GONE_AFTER, INCIDENT_WINDOW, RESTART_DELAYS
from webhook.settings import NamespaceName, Number, ObjectName, Seconds, setting


def _identity(_context: click.Context, _option: click.Parameter, given: str) -> str:
    """Two processes of one host are two candidates."""
    return given or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"


def _fit(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> object:
    for name in given:
        if not name or not name.isascii() or name != name.strip():
            raise click.BadParameter(
                f"{name!r} is not a valid certificate name: give a DNS name or an IP "
                "address, in ASCII"
            )
    return given


def _addresses(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[tuple[str, int], ...]:
    return tuple(map(_address, given))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise click.BadParameter(
            f"{text!r} is not a valid address: give a host and a port, such as 127.0.0.1:8081"
        )
    return host.strip("[]"), int(port)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """The options of `fairlead controller`; times in seconds."""

    kubeconfig: Path | None = setting(
        "--kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The cluster. Default: $KUBECONFIG, else the cluster of this pod.",
    )
    namespace: str = setting(
        "--namespace",
        type=NamespaceName(),
        default="",
        metavar="NAME",
        help="Watch Runs in this namespace only. Default: all namespaces.",
    )
    cluster_domain: str = setting(
        "--cluster-domain",
        type=ObjectName(),
        default="",
        metavar="DOMAIN",
        help="Domain to append to the replicas' addresses, such as cluster.local. Default: none; "
        "the search list of the pods' resolver completes the addresses.",
    )
    lease_namespace: str = setting(
        "--lease-namespace",
        type=NamespaceName(),
        default="",
        metavar="NAME",
        help="Namespace of the Lease for leader election. Default: --namespace, else that of "
        "this pod, else default.",
    )
    lease_name: str = setting(
        "--lease-name",
        type=ObjectName(),
        default="fairlead-controller",
        metavar="NAME",
        help="Name of the Lease. Controllers of different namespaces need different names.",
    )
    identity: str = setting(
        "--identity",
        default="",
        metavar="NAME",
        callback=_identity,
        help="Identity of this process in the Lease. Default: the host name and a random suffix.",
    )
    lease_duration: float = setting(
        "--lease-duration",
        type=Seconds(1, 3600),
        default=15.0,
        help="Another process may take the Lease after this time without a renewal.",
    )
    renew_deadline: float = setting(
        "--renew-deadline",
        type=Seconds(0.5, 3600),
        default=10.0,
        help="The leader stops writing after this time without a renewal. Must be less than "
        "--lease-duration.",
    )
    retry_period: float = setting(
        "--retry-period",
        type=Seconds(0.1, 3600),
        default=2.0,
        help="Time between renewals, or reads, of the Lease.",
    )
    no_leader_election: bool = setting(
        "--no-leader-election",
        is_flag=True,
        help="For development: lead immediately, without a Lease.",
    )
    qps: float = setting(
        "--qps",
        type=Number(1, 100_000),
        default=300.0,
        help="Maximum writes per second to the API server.",
    )
    burst: int = setting(
        "--burst",
        type=click.IntRange(min=1),
        default=600,
        help="Maximum burst of writes after an idle time.",
    )
    workers: int = setting(
        "--workers",
        type=click.IntRange(min=1),
        default=4,
        help="Number of Runs that are reconciled at the same time.",
    )
    restart_backoff_first: float = setting(
        "--restart-backoff-first",
        type=Seconds(0.1, 86400),
        default=RESTART_DELAYS.first,
        help="Delay before the first restart of a replica after a failure. The delay doubles with "
        "each failure. A replica restarts immediately after its first disruption, and "
        "with these delays after further ones.",
    )
    restart_backoff_longest: float = setting(
        "--restart-backoff-longest",
        type=Seconds(0.1, 86400),
        default=RESTART_DELAYS.longest,
        help="Maximum delay before a restart. Must not be less than --restart-backoff-first.",
    )
    incident_window: float = setting(
        "--incident-window",
        type=Seconds(0, INCIDENT_WINDOW),
        default=INCIDENT_WINDOW,
        help="How long to wait before a failure counts against backoffLimit, because a lost node "
        "may be its cause. Restarts do not wait. Applies only to runs with interruptible nodes.",
    )
    gone_after: float = setting(
        "--node-gone-after",
        type=Seconds(1, 3600),
        default=GONE_AFTER,
        help="How long after the deletion of a Node its pods are replaced, if it has not come "
        "back. Kubernetes itself deletes them after about a minute.",
    )
    leaving_taints: tuple[str, ...] = setting(
        "--leaving-taint",
        multiple=True,
        metavar="KEY",
        help="The key of another taint by which a node is announced to be taken away, beside those "
        "of known clouds and autoscalers. Repeatable.",
    )
    nodes: bool | None = setting(
        "--nodes/--no-nodes",
        default=None,
        help="Watch the cluster's nodes and capacity classes, to report lost nodes and to replace "
        "their pods. Default: yes, unless --namespace is given, because a Role cannot grant it.",
    )
    certificates: bool = setting(
        "--certificates/--no-certificates",
        default=False,
        show_default=True,
        help="Also create, renew and publish the webhook's certificates, in the Lease's namespace.",
    )
    certificate_settle: float = setting(
        "--certificate-settle",
        type=Seconds(0, 3600),
        default=30.0,
        help="How long an API server may use the previous caBundle after a change.",
    )
    certificate_names: tuple[str, ...] = setting(
        "--certificate-name",
        multiple=True,
        metavar="NAME",
        callback=_fit,
        help="Another DNS name or IP address in the webhook's certificate. Repeatable.",
    )
    policy_status: bool | None = setting(
        "--policy-status/--no-policy-status",
        default=None,
        help="Write the status of the cluster's policies, capacity classes, exceptions and "
        "sources. Default: yes, unless --namespace is given, because only one controller may write "
        "it.",
    )
    policy_status_interval: float = setting(
        "--policy-status-interval",
        type=Seconds(0.2, 3600),
        default=60.0,
        help="Minimum time between writes of the pods that a policy matched. Changes of the "
        "policy itself are written at once.",
    )
    policy_reports: bool = setting(
        "--policy-reports",
        is_flag=True,
        help="Write a policy report (PolicyReport of wgpolicyk8s.io/v1alpha2) in each namespace "
        "with pods of runs. It lists effects of policies under Audit, pods without a stamp or a "
        "node, and exceptions in use. Requires --policy-status.",
    )
    policy_reports_interval: float = setting(
        "--policy-reports-interval",
        type=Seconds(0.2, 86400),
        default=300.0,
        help="Time between two passes over all pods for --policy-reports.",
    )
    webhook_replicas: tuple[tuple[str, int], ...] = setting(
        "--webhook-replica",
        multiple=True,
        metavar="HOST:PORT",
        callback=_addresses,
        help="Address of a webhook replica's /metrics, if it does not run in a pod. Repeatable. "
        "Default: the webhook's pods in the Lease's namespace.",
    )
    webhook_configuration: str = setting(
        "--webhook-configuration",
        type=ObjectName(),
        default="",
        metavar="NAME",
        help="Restore the rules of this MutatingWebhookConfiguration when the time of "
        "`fairlead webhook disable` is over. Report whether it, the ValidatingWebhookConfiguration "
        "of this name and the guards are in force. Default: neither.",
    )
    host: str = setting(
        "--host", default="", help="Address to listen on. Default: all addresses, IPv4 and IPv6."
    )
    health_port: int = setting(
        "--health-port",
        type=click.IntRange(0, 65535),
        default=8082,
        help="Plain HTTP port, for /livez, /readyz and /metrics. 0 selects a free port; the log "
        "shows it.",
    )
    log_level: str = setting(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        help="Minimum level of log messages.",
    )

    @property
    def leases(self) -> str:
        """The Lease's namespace; empty if it is the process' own."""
        return self.lease_namespace or self.namespace

    @property
    def watches_nodes(self) -> bool:
        """Whether nodes and capacity classes are watched."""
        return not self.namespace if self.nodes is None else self.nodes

    @property
    def writes_policy_status(self) -> bool:
        """Whether the status of policies is written."""
        return not self.namespace if self.policy_status is None else self.policy_status
