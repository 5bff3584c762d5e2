"""The manifests of a Run's objects other than pods, and what all of its objects share.

All: labels, owner references, the volumes of the run's files and SSH keys. A training run has a
headless Service, and possibly a ConfigMap and a Secret. A notebook, a tensorboard or a service has
a Deployment and a Service.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.frameworks.framework import (
    FILES,
    SSH_AUTHORIZED_KEYS,
    SSH_PRIVATE_KEY,
    SSH_PUBLIC_KEY,
    ReplicaEnv,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.frameworks.framework import SharedConfig
    from webhook.frameworks.replica_group import Gang
    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.pod_template_cache import PodTemplateCache

# The prefix before the hyphen gives service meshes the protocol.
_PORT_NAME: Final = "tcp-rendezvous"
# Seconds between readiness probes: users wait for the application to open.
_PROBE_PERIOD: Final = 5
FILES_VOLUME: Final = "fairlead-rendezvous"
KEYS_VOLUME: Final = "fairlead-ssh"

# The keys of a Secret of type kubernetes.io/ssh-auth; Kubeflow's MPI operator uses the second.
PRIVATE: Final = "ssh-privatekey"
PUBLIC: Final = "ssh-publickey"
_ITEMS: Final = (
    {"key": PRIVATE, "path": SSH_PRIVATE_KEY},
    {"key": PUBLIC, "path": SSH_PUBLIC_KEY},
    {"key": PUBLIC, "path": SSH_AUTHORIZED_KEYS},
)
_OWNER_ONLY: Final = 0o600
_READABLE: Final = 0o644
_EXECUTABLE: Final = 0o755
_ROOT_HOME: Final = "/root/"


def labels(run: Run) -> dict[str, str]:
    """Return the labels of all objects of the run."""
    run_labels = {
        names.MANAGED_BY: names.MANAGER,
        names.RUN: run.name,
        names.RUN_UID: run.metadata.uid,
        names.KIND: run.spec.kind,
    }
    if run.spec.framework:
        run_labels[names.FRAMEWORK] = run.spec.framework
    return run_labels


def selector(run: Run) -> dict[str, str]:
    """Return the selector of this run's pods, by uid because names are reused."""
    return {names.RUN_UID: run.metadata.uid}


def owners(run: Run) -> list[JsonObject]:
    """Return the Run as metav1.OwnerReference.

    blockOwnerDeletion is false: true would need the permission to set the Run's finalizers, and
    nothing depends on the pods' deletion.
    """
    return [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.RUN_KIND,
            "name": run.name,
            "uid": run.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]


def metadata(run: Run, name: str) -> JsonObject:
    """Return the metadata of an object that is not a pod."""
    return {
        "name": name,
        "namespace": run.namespace,
        "labels": labels(run),
        "ownerReferences": owners(run),
    }


def make_object(
    api_version: str, kind: str, meta: JsonObject, rest: Mapping[str, object]
) -> JsonObject:
    """Return an object with its keys in the usual order."""
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}


def config_map_name(run: Run) -> str:
    """Return the name of the ConfigMap of the run's files."""
    return f"{run.name}-rendezvous"


def secret_name(run: Run) -> str:
    """Return the name of the Secret of the run's SSH keys.

    It is in the status once the controller has made it. Before, it is the one that earlier versions
    made, which the pods of Runs that they have begun mount.
    """
    return run.status.ssh_secret or f"{run.name}-ssh-{run.metadata.uid[:8]}"


def mounts(
    run: Run, shared: SharedConfig, pod: Mapping[str, Any], main: JsonObject
) -> list[JsonObject]:
    """Return pairs of a volume and its mount, as {"volume": …, "mount": …}.

    A path at which the main container has a mount of its own is left out.
    """
    pairs = []
    if shared.files:
        source: JsonObject = {"configMap": {"name": config_map_name(run)}}
        if any(text.startswith("#!") for text in shared.files.values()):
            source["configMap"]["defaultMode"] = _EXECUTABLE
        pairs.append(_pair(FILES_VOLUME, source, FILES))
    if shared.ssh_keys_at:
        mode = _mode(shared.ssh_keys_at, pod, main)
        secret = {"secretName": secret_name(run), "defaultMode": mode, "items": list(_ITEMS)}
        pairs.append(_pair(KEYS_VOLUME, {"secret": secret}, shared.ssh_keys_at))
    written_paths = {_plain(mount.get("mountPath")) for mount in main.get("volumeMounts") or ()}
    return [pair for pair in pairs if _plain(pair["mount"]["mountPath"]) not in written_paths]


def _pair(name: str, source: JsonObject, path: str) -> JsonObject:
    mount = {"name": name, "mountPath": path, "readOnly": True}
    return {"volume": {"name": name, **source}, "mount": mount}


def _plain(path: object) -> object:
    return path.rstrip("/") if isinstance(path, str) else path


def _mode(path: str, pod: Mapping[str, Any], main: JsonObject) -> int:
    """Return the file mode of the SSH keys.

    ssh rejects a private key that others may read, but only if the user owns it (`sshkey_perm_ok`
    in OpenSSH's authfile.c). Root owns the files of a Secret: for root the mode must be private,
    and any other user could not read private files.
    """
    user = (main.get("securityContext") or {}).get("runAsUser")
    if user is None:
        user = (pod.get("securityContext") or {}).get("runAsUser")
    root = user == 0 if user is not None else path.startswith(_ROOT_HOME)
    return _OWNER_ONLY if root else _READABLE


def headless_service(run: Run, gang: Gang, *, closed: bool = False) -> JsonObject:
    """Return the Service that gives each replica an address, unless it is closed.

    It publishes addresses that are not ready, because replicas look for each other before they are
    ready. It has the framework's port; without a framework it has none, which is valid for a
    headless Service.
    """
    spec: JsonObject = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        # Without a selector the Service would be dual-stack, even in a single-stack cluster.
        "selector": {**selector(run), **({names.CLOSED: "true"} if closed else {})},
    }
    if run.spec.framework is not None:
        spec["ports"] = [{"name": _PORT_NAME, "port": gang.port, "protocol": "TCP"}]
    return make_object("v1", "Service", metadata(run, run.name), {"spec": spec})


def config_map(run: Run, shared: SharedConfig) -> JsonObject:
    """Return the ConfigMap with the files that all replicas share."""
    meta = metadata(run, config_map_name(run))
    return make_object("v1", "ConfigMap", meta, {"data": dict(shared.files)})


def keys_secret(run: Run, name: str, private: str, public: str) -> JsonObject:
    """Return the Secret with the SSH keys: a PEM private key and an authorized_keys line."""
    data = {PRIVATE: private, PUBLIC: public}
    encoded = {key: b64encode(text.encode()).decode() for key, text in data.items()}
    meta = metadata(run, name)
    return make_object("v1", "Secret", meta, {"type": "kubernetes.io/ssh-auth", "data": encoded})


def service_ports(run: Run, main: JsonObject) -> list[JsonObject]:
    """Return the Service's ports: the run's, else those of the main container, else none.

    A Service with several ports needs names. An unnamed port is named by its number, plus its
    protocol if that name is taken.
    """
    if run.spec.ports:
        given = [(port.name, port.port, port.target_port, "TCP") for port in run.spec.ports]
    else:
        given = [
            (_text(port, "name"), port["containerPort"], None, _text(port, "protocol") or "TCP")
            for port in main.get("ports") or ()
            if isinstance(port.get("containerPort"), int)
        ]
    ports_by_key: dict[tuple[int, str], JsonObject] = {}
    taken = {name for name, _, _, _ in given if name}
    for name, port, target, protocol in given:
        if (port, protocol) in ports_by_key:
            continue
        if not name and len(given) > 1:
            longer = (f"-{protocol.lower()}" + "-x" * more for more in range(len(given)))
            name = next(
                candidate
                for end in ("", *longer)
                if (candidate := f"port-{port}{end}") not in taken
            )
            taken.add(name)
        ports_by_key[port, protocol] = {
            **({"name": name} if name else {}),
            "port": port,
            "targetPort": target or port,
            "protocol": protocol,
        }
    return list(ports_by_key.values())


def _text(port: JsonObject, field: str) -> str | None:
    """Return a string field of a port; None for another type, which the API server rejects."""
    value = port.get(field)
    return value if isinstance(value, str) else None


def service(run: Run, ports: Sequence[JsonObject]) -> JsonObject:
    """Return the Service for the Deployment's pod."""
    spec = {"type": "ClusterIP", "selector": selector(run), "ports": list(ports)}
    return make_object("v1", "Service", metadata(run, run.name), {"spec": spec})


def address(run: Run, ports: Sequence[JsonObject], cluster_domain: str) -> str:
    """Return the URL within the cluster, of the first port.

    The scheme is always http: notebooks and tensorboards serve plain HTTP, and TLS is unknown.
    """
    domain = f".{cluster_domain}" if cluster_domain else ""
    return f"http://{run.name}.{run.namespace}.svc{domain}:{ports[0]['port']}"


def deployment(
    run: Run, template_cache: PodTemplateCache, ports: Sequence[JsonObject]
) -> JsonObject:
    """Return the Deployment of one pod.

    The strategy is Recreate, so that the old pod releases a ReadWriteOncePod volume first.
    """
    labels = {**template_cache.labels, names.REPLICA_INDEX: "0"}
    meta = {
        key: value for key, value in template_cache.metadata.items() if key != "ownerReferences"
    }
    containers = template_cache.containers(ReplicaEnv())
    at = template_cache.at
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
    return make_object("apps/v1", "Deployment", metadata(run, run.name), {"spec": spec})


def _probed(main: JsonObject, ports: Sequence[JsonObject]) -> JsonObject:
    """Return the main container with a TCP readiness probe, unless it has a probe of its own."""
    tcp = next((port for port in ports if port["protocol"] == "TCP"), None)
    if main.get("readinessProbe") or tcp is None:
        return main
    probe = {"tcpSocket": {"port": tcp["targetPort"]}, "periodSeconds": _PROBE_PERIOD}
    return {**main, "readinessProbe": probe}
