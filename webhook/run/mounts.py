"""What the main container finds mounted: the run's files and its SSH keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.run.rendezvous.framework import (
    FILES,
    SSH_AUTHORIZED_KEYS,
    SSH_PRIVATE_KEY,
    SSH_PUBLIC_KEY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.rendezvous.framework import SharedConfig

FILES_VOLUME: Final = "fairlead-rendezvous"
KEYS_VOLUME: Final = "fairlead-ssh"

# The keys of a Secret of type kubernetes.io/ssh-auth, the second as Kubeflow's MPI operator has it.
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


def config_map_name(run: Run) -> str:
    """The name of the ConfigMap of the run's files."""
    return f"{run.name}-rendezvous"


def secret_name(run: Run) -> str:
    """The name of the Secret of the run's SSH keys.

    With the beginning of the uid in it nobody else's has it, an earlier run's neither: the
    controller can tell that one which is there is the run's, and need not be allowed to read it.
    """
    return f"{run.name}-ssh-{run.metadata.uid[:8]}"


def mounts(
    run: Run, shared: SharedConfig, pod: Mapping[str, Any], main: JsonObject
) -> list[JsonObject]:
    """Pairs of a volume and its mount, as {"volume": …, "mount": …}.

    Where the main container has a mount of its own at the path, ours stays away.
    """
    found = []
    if shared.files:
        source: JsonObject = {"configMap": {"name": config_map_name(run)}}
        if any(text.startswith("#!") for text in shared.files.values()):
            source["configMap"]["defaultMode"] = _EXECUTABLE
        found.append(_pair(FILES_VOLUME, source, FILES))
    if shared.ssh_keys_at:
        mode = _mode(shared.ssh_keys_at, pod, main)
        secret = {"secretName": secret_name(run), "defaultMode": mode, "items": list(_ITEMS)}
        found.append(_pair(KEYS_VOLUME, {"secret": secret}, shared.ssh_keys_at))
    own = {_plain(mount.get("mountPath")) for mount in main.get("volumeMounts") or ()}
    return [pair for pair in found if _plain(pair["mount"]["mountPath"]) not in own]


def _pair(name: str, source: JsonObject, path: str) -> JsonObject:
    mount = {"name": name, "mountPath": path, "readOnly": True}
    return {"volume": {"name": name, **source}, "mount": mount}


def _plain(path: object) -> object:
    return path.rstrip("/") if isinstance(path, str) else path


def _mode(path: str, pod: Mapping[str, Any], main: JsonObject) -> int:
    """The mode of the SSH keys.

    ssh refuses a private key that others may read, but only if it is the user's own
    (`sshkey_perm_ok` in OpenSSH's authfile.c). The files of a Secret are root's: for root they
    must be closed, and any other user could not read them if they were.
    """
    user = (main.get("securityContext") or {}).get("runAsUser")
    if user is None:
        user = (pod.get("securityContext") or {}).get("runAsUser")
    root = user == 0 if user is not None else path.startswith(_ROOT_HOME)
    return _OWNER_ONLY if root else _READABLE
