"""The settings of the webhook, which are the options of `fairlead serve`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from webhook import names
from webhook.api_paths import check_name, check_namespace
from webhook.errors import InvalidName
from webhook.server.logs import LEVELS
from webhook.settings import ObjectName, Seconds, setting

_FILE = click.Path(dir_okay=False, path_type=Path)


class NamespacedName(click.ParamType[tuple[str, str]]):
    """Converts to (namespace, name); the namespace is "" if it is not given."""

    name = "[NAMESPACE/]NAME"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        namespace, slash, name = str(value).rpartition("/")
        try:
            return check_namespace(namespace) if slash else "", check_name(name)
        except InvalidName as error:
            self.fail(f"{value!r}: want NAME or NAMESPACE/NAME: {error}", param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The options of `fairlead serve`; times in seconds."""

    policies: Path | None = setting(
        "--policies",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Folder of policy files, including subfolders; watched for changes. May be a mounted "
        "ConfigMap.",
    )
    policies_from_cluster: bool = setting(
        "--policies-from-cluster",
        is_flag=True,
        help="Watch the cluster's PlacementPolicies, CapacityClasses, PlacementExceptions and "
        "RunSources, instead of a folder.",
    )
    rollback_to: str = setting(
        "--rollback-to",
        type=click.Choice(names.RELEASES),
        default=names.ROLLBACK_TO,
        help="With --policies-from-cluster: the oldest release that this cluster may be rolled "
        "back to. The webhook lets no policy be stored with a field that this release does not "
        "read.",
    )
    kubeconfig: Path | None = setting(
        "--kubeconfig",
        type=_FILE,
        help="The cluster whose namespaces and priority classes are watched. Default: $KUBECONFIG, "
        "else the cluster of this pod.",
    )
    cluster_file: Path | None = setting(
        "--namespaces",
        type=_FILE,
        help="Run without a cluster: read Namespace and PriorityClass objects from this YAML file, "
        "once.",
    )
    host: str = setting(
        "--host", default="", help="Address to listen on. Default: all addresses, IPv4 and IPv6."
    )
    port: int = setting(
        "--port",
        type=click.IntRange(0, 65535),
        default=8443,
        help="HTTPS port, for the API server. 0 selects a free port; the log shows it.",
    )
    health_port: int = setting(
        "--health-port",
        type=click.IntRange(0, 65535),
        default=8081,
        help="Plain HTTP port, for /livez, /readyz and /metrics.",
    )
    cert: Path | None = setting("--cert", type=_FILE, help="Certificate chain as PEM; watched.")
    key: Path | None = setting(
        "--key", type=_FILE, help="The certificate's private key as PEM; watched."
    )
    tls_secret: tuple[str, str] | None = setting(
        "--tls-secret",
        type=NamespacedName(),
        help="Secret of type kubernetes.io/tls with the serving certificate; watched. A new "
        "certificate is used immediately. Default namespace: that of this pod.",
    )
    service: tuple[str, str] = setting(
        "--service",
        type=NamespacedName(),
        default=names.WEBHOOK,
        help="The Service by which the API server reaches the webhook. The certificate must be "
        "valid for NAME.NAMESPACE.svc. Default namespace: that of --tls-secret, else that of this "
        "pod.",
    )
    webhook_configuration: str = setting(
        "--webhook-configuration",
        type=ObjectName(),
        default="",
        metavar="NAME",
        help="MutatingWebhookConfiguration to watch. The webhook is ready only while each "
        "caBundle for --service verifies its certificate. Without this option, or without such a "
        "caBundle, the ca.crt of --tls-secret is used.",
    )
    controller_user: str = setting(
        "--controller-user",
        default=names.CONTROLLER_USER,
        metavar="NAME",
        help="The user of Fairlead's controller. Only its pods may have a history, by which "
        "fallbacks are decided.",
    )
    tls_min_version: str = setting(
        "--tls-min-version",
        type=click.Choice(["1.3", "1.2"]),
        default="1.3",
        help="Minimum TLS version.",
    )
    client_ca: Path | None = setting(
        "--client-ca",
        type=_FILE,
        help="CA certificates as PEM; watched. Only clients with a certificate signed by one of "
        "them are accepted.",
    )
    client_names: tuple[str, ...] = setting(
        "--client-name",
        multiple=True,
        metavar="NAME",
        help="With --client-ca: accept only clients whose certificate has this common name "
        "or DNS name; others get 403. Repeatable. Required if the CA also signs certificates of "
        "other clients.",
    )
    self_signed: bool = setting(
        "--self-signed",
        is_flag=True,
        help="For development: create a CA and a certificate for localhost when the process "
        "starts.",
    )
    extra_names: tuple[str, ...] = setting(
        "--name",
        multiple=True,
        metavar="NAME",
        help="With --self-signed: another DNS name or IP address in the certificate. Repeatable.",
    )
    ca_out: Path | None = setting(
        "--ca-out",
        type=_FILE,
        help="With --self-signed: write the CA certificate to this file, for the caBundle of a "
        "webhook configuration.",
    )
    grace: float = setting(
        "--grace",
        type=Seconds(0, 3600),
        default=10.0,
        help="How long to accept requests after SIGTERM. Use more time than the cluster needs to "
        "remove the endpoint (a second or two), because API servers do not retry a failed "
        "connection. Use less than the pod's terminationGracePeriodSeconds.",
    )
    max_in_flight: int = setting(
        "--max-in-flight",
        type=click.IntRange(min=1),
        default=600,
        help="Maximum number of requests in flight. Further requests have to be retried after a "
        "second. The default suits three API servers, each with the default limit of 200 writes "
        "in flight.",
    )
    max_connections: int = setting(
        "--max-connections",
        type=click.IntRange(min=1),
        default=1000,
        help="Maximum number of connections; must exceed --max-in-flight. At the limit, a new "
        "connection replaces the one that has waited longest in the stage furthest above its "
        "share. Each takes about 60 KB of memory.",
    )
    poll_interval: float = setting(
        "--poll-interval",
        type=Seconds(0.05, 3600),
        default=2.0,
        help="How often policies and certificates are checked.",
    )
    default_toleration_seconds: int = setting(
        "--default-toleration-seconds",
        type=click.IntRange(min=0),
        default=300,
        metavar="SECONDS",
        help="The API server's --default-not-ready-toleration-seconds: tolerations with "
        "this value count as unset.",
    )
    nodes: bool = setting(
        "--nodes",
        is_flag=True,
        help="Watch the cluster's nodes, and warn about pods that no node admits. Requires the "
        "right to list and watch nodes, and about 2 MB of memory for 1,000 nodes.",
    )
    events: bool = setting(
        "--events",
        is_flag=True,
        help="Write an Event on the workload if its pod is rejected or no node admits it: at most "
        "one for each reason and hour. Requires the right to create Events in all namespaces.",
    )
    log_level: str = setting(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        help="Minimum level of log messages. With debug, each decision is logged.",
    )
