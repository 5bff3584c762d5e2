"""A notebook, a tensorboard or a service: a Deployment of one pod, and a Service before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.run.ownership import metadata, named, selector
from webhook.run.rendezvous.framework import ReplicaEnv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.pod_template_cache import PodTemplateCache

# How often it is asked whether it answers, in seconds: people wait for it to open.
_PROBE_PERIOD: Final = 5


def service_ports(run: Run, main: JsonObject) -> list[JsonObject]:
    """The Service's ports: the run's, else those of the main container; empty if there are none.

    A port that has no name gets one where there are several, as a Service asks for.
    """
    if run.spec.ports:
        given = [(port.name, port.port, port.target_port, "TCP") for port in run.spec.ports]
    else:
        given = [
            (port.get("name"), port["containerPort"], None, port.get("protocol") or "TCP")
            for port in main.get("ports") or ()
            if isinstance(port.get("containerPort"), int)
        ]
    found: dict[tuple[int, str], JsonObject] = {}
    for name, port, target, protocol in given:
        named_so = name or (f"port-{port}" if len(given) > 1 else None)
        found.setdefault(
            (port, protocol),
            {
                **({"name": named_so} if named_so else {}),
                "port": port,
                "targetPort": target or port,
                "protocol": protocol,
            },
        )
    return list(found.values())


def service(run: Run, ports: Sequence[JsonObject]) -> JsonObject:
    """The Service in front of the Deployment's pod."""
    spec = {"type": "ClusterIP", "selector": selector(run), "ports": list(ports)}
    return named("v1", "Service", metadata(run, run.name), {"spec": spec})


def address(run: Run, ports: Sequence[JsonObject], cluster_domain: str) -> str:
    """Where it is reached from within the cluster: by the first port; whether by TLS is not known,
    and notebooks and tensorboards speak plain HTTP."""
    domain = f".{cluster_domain}" if cluster_domain else ""
    return f"http://{run.name}.{run.namespace}.svc{domain}:{ports[0]['port']}"


def deployment(
    run: Run, template_cache: PodTemplateCache, ports: Sequence[JsonObject]
) -> JsonObject:
    """The Deployment of one pod.

    Recreate: a volume that one pod alone may hold is free before the next pod wants it.
    """
    labels = {**template_cache.labels, names.REPLICA_INDEX: "0"}
    meta = {
        key: value for key, value in template_cache.metadata.items() if key != "ownerReferences"
    }
    containers = template_cache.containers(ReplicaEnv())
    at = len(template_cache.before)
    containers[at] = _probed(containers[at], ports)
    template = {
        "metadata": {"labels": labels, "annotations": dict(template_cache.annotations), **meta},
        "spec": {**template_cache.spec, "containers": containers},
    }
    spec: dict[str, Any] = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selector(run)},
        "template": template,
    }
    return named("apps/v1", "Deployment", metadata(run, run.name), {"spec": spec})


def _probed(main: JsonObject, ports: Sequence[JsonObject]) -> JsonObject:
    """The main container, asked for readiness by its first TCP port unless it says how itself."""
    tcp = next((port for port in ports if port["protocol"] == "TCP"), None)
    if main.get("readinessProbe") or tcp is None:
        return main
    probe = {"tcpSocket": {"port": tcp["targetPort"]}, "periodSeconds": _PROBE_PERIOD}
    return {**main, "readinessProbe": probe}
