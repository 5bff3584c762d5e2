"""What the main container finds mounted, and who may read it."""

from __future__ import annotations

import pytest

from tests.run.runs import a_run, containers, spec_of
from webhook.frameworks.framework import SharedConfig
from webhook.run.manifests import mounts

RUN = a_run("r", {"template": spec_of(containers("main"))})
ROOT, HOME = "/root/.ssh", "/home/mpi/.ssh"


def mode(path: str, pod_user: int | None, own_user: int | None) -> int:
    """The mode of the SSH keys, for a pod and a container with these users."""
    pod = {"securityContext": {"runAsUser": pod_user}} if pod_user is not None else {}
    main = {"securityContext": {"runAsUser": own_user}} if own_user is not None else {}
    (pair,) = mounts(RUN, SharedConfig(ssh_keys_at=path), pod, main)
    found: int = pair["volume"]["secret"]["defaultMode"]
    return found


@pytest.mark.parametrize(
    ("path", "pod_user", "own_user", "expected"),
    [
        (ROOT, None, None, 0o600),
        (HOME, None, None, 0o644),
        (HOME, 0, None, 0o600),
        (ROOT, 1000, None, 0o644),
        (ROOT, 1000, 0, 0o600),
        (HOME, 0, 1000, 0o644),
    ],
)
def test_keys_are_closed_for_root_and_open_for_others(
    path: str, pod_user: int | None, own_user: int | None, expected: int
) -> None:
    """The container's user goes before the pod's; where neither is said the path tells."""
    assert mode(path, pod_user, own_user) == expected


def test_files_and_keys_are_mounted_read_only() -> None:
    """Each by a volume of its own."""
    found = mounts(RUN, SharedConfig({"hostfile": "h"}, ROOT), {}, {})
    assert [(each["volume"]["name"], each["mount"]["mountPath"]) for each in found] == [
        ("fairlead-rendezvous", "/etc/fairlead"),
        ("fairlead-ssh", ROOT),
    ]
    assert all(each["mount"]["readOnly"] for each in found)


def test_a_mount_of_the_containers_own_stays() -> None:
    """Keys that a run brings itself, at the same path, with or without a slash at its end."""
    own = {"volumeMounts": [{"name": "keys", "mountPath": f"{ROOT}/"}]}
    assert mounts(RUN, SharedConfig(ssh_keys_at=ROOT), {}, own) == []


def test_what_is_not_shared_is_not_mounted() -> None:
    """Most frameworks tell all in variables."""
    assert mounts(RUN, SharedConfig(), {}, {}) == []
