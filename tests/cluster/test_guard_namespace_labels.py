"""Who may change the labels from which policies take values, by the real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from tests.cluster.guards import guarded, type_warnings
from tests.cluster.spaces import Space
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.guards import namespace_label_guard
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.policy_fixtures"]

OWNER, ADMIN = "owner", "policy-admin"
LABELS = ("team-pool", "example.com/team")
REFUSED = "may not update placementpolicies"


@pytest.fixture
def space(policy_api: ControlPlane, cluster_kubectl: Kubectl, namespace: str) -> Iterator[Space]:
    """A namespace that two users may label; one of them may write policies, too."""
    space = Space(policy_api, cluster_kubectl.within(namespace), namespace)
    verbs = "--verb=create,update,patch,get"
    roles = {f"{namespace}-owner": "namespaces,namespaces/status"}
    roles[f"{namespace}-admin"] = f"placementpolicies.{names.GROUP}"
    for role, resources in roles.items():
        space.kubectl("create", "clusterrole", role, verbs, f"--resource={resources}")
    users = {f"{namespace}-owner": (OWNER, ADMIN), f"{namespace}-admin": (ADMIN,)}
    for role, granted in users.items():
        given = [f"--user={user}" for user in granted]
        space.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", *given)
    yield space
    for role in roles:
        # Other tests have users of these names.
        space.kubectl("delete", "clusterrolebinding", role)
        space.kubectl("delete", "clusterrole", role)


def label(space: Space, user: str, *words: str) -> CompletedProcess[str]:
    return space.kubectl.run("label", "namespace", space.name, *words, "--overwrite", "--as", user)


def test_only_who_may_write_policies_changes_the_labels(space: Space) -> None:
    """Also by a write of the status, and at creation; every other label is free."""

    def in_effect() -> bool:
        return REFUSED in label(space, OWNER, "team-pool=x", "--dry-run=server").stderr

    with guarded(space.plane, namespace_label_guard(LABELS), in_effect):
        assert type_warnings(space.plane, names.NAMESPACE_LABELS_GUARD) == []
        for key in LABELS:
            refused = label(space, OWNER, f"{key}=red")
            mentions(refused.stderr, key, OWNER, REFUSED)
            assert label(space, ADMIN, f"{key}=red").returncode == 0
            assert REFUSED in label(space, OWNER, f"{key}-").stderr
        assert label(space, OWNER, "team-pool=red", "free=yes").returncode == 0
        patch = ("-p", '{"metadata":{"labels":{"team-pool":"blue"}}}', "--subresource=status")
        by_status = ("patch", "namespace", space.name, "--type=merge", *patch, "--as", OWNER)
        assert REFUSED in space.kubectl.run(*by_status).stderr
        labels = {"labels": {"team-pool": "red"}}
        manifest = json.dumps(
            an_object("v1", "Namespace", {"name": f"{space.name}-more", **labels})
        )
        made = ("create", "--dry-run=server", "-f", "-", "--as")
        assert REFUSED in space.kubectl.run(*made, OWNER, stdin=manifest).stderr
        assert space.kubectl.run(*made, ADMIN, stdin=manifest).returncode == 0
