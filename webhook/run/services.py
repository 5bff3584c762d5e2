"""The objects beside a run's pods by which they find each other: Service, ConfigMap, Secret."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.run import mounts
from webhook.run.ownership import metadata, named, selector

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.run.gang import Gang
    from webhook.run.model import Run
    from webhook.run.rendezvous.framework import SharedConfig

# Service meshes take the protocol from what stands before the hyphen.
_PORT_NAME: Final = "tcp-rendezvous"


def headless_service(run: Run, gang: Gang, *, closed: bool = False) -> JsonObject:
    """The Service under which every replica has its address; none has, while it is closed.

    Not-ready addresses are published, since replicas look for each other before they are ready.
    It has the framework's port; without a framework none, as a headless Service may.
    """
    spec: JsonObject = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        # Without any selector it would get two address families, where the cluster may have one.
        "selector": {**selector(run), **({names.CLOSED: "true"} if closed else {})},
    }
    if run.spec.framework is not None:
        spec["ports"] = [{"name": _PORT_NAME, "port": gang.port, "protocol": "TCP"}]
    return named("v1", "Service", metadata(run, run.name), {"spec": spec})


def config_map(run: Run, shared: SharedConfig) -> JsonObject:
    """The ConfigMap with the files that all replicas share."""
    meta = metadata(run, mounts.config_map_name(run))
    return named("v1", "ConfigMap", meta, {"data": dict(shared.files)})


def keys_secret(run: Run, private: str, public: str) -> JsonObject:
    """The Secret with the run's SSH keys: PEM text, and a line of authorized_keys."""
    data = {mounts.PRIVATE: private, mounts.PUBLIC: public}
    encoded = {key: b64encode(text.encode()).decode() for key, text in data.items()}
    meta = metadata(run, mounts.secret_name(run))
    return named("v1", "Secret", meta, {"type": "kubernetes.io/ssh-auth", "data": encoded})
