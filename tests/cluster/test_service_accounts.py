"""What a policy that matches by serviceAccounts meets in a real API server.

The exported form of the same match is held against the webhook in tests/agreement.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.guards import guarded, mutating
from tests.cluster.manifests import Json, pod, policy_text
from tests.cluster.spaces import NewNamespace, Space, stamp
from tests.wording import mentions

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

_HERE = "namespaceSelector: {matchLabels: {test: accounts}}"
POLICIES = "".join(
    policy_text(
        name,
        f'match: {{{_HERE}, serviceAccounts: ["{account}"]}}',
        f'overrides: {{annotations: {{{name}: "yes"}}}}',
    )
    for name, account in (("unset", "default"), ("training", "train*"), ("late", "late"))
).removesuffix("---")
AUTHOR = ("--as", "author")


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace with the accounts trainer and late, that the author may edit."""
    space = new_namespace({"test": "accounts"})
    space.kubectl("create", "rolebinding", "author", "--clusterrole=edit", "--user=author")
    for name in ("trainer", "late"):
        space.kubectl("create", "serviceaccount", name)
    return space


def matched(space: Space, **fields: Any) -> set[str]:
    """The policies that matched a pod of this spec."""
    return set(stamp(space.create(pod("p", **fields), dry_run=True))["policies"])


def test_a_policy_matches_by_the_account_that_the_pod_will_have(space: Space) -> None:
    """Also where the pod names none, or by the deprecated field."""
    assert matched(space) == {"unset"}
    assert matched(space, serviceAccountName="trainer") == {"training"}
    assert matched(space, serviceAccount="trainer") == {"training"}


def test_the_account_is_filled_in_before_other_admission_sees_the_pod(space: Space) -> None:
    """By the plugin ServiceAccount, which runs before mutating policies and webhooks."""
    seen = "object.spec.?serviceAccountName.orValue('none')"
    written = f'[JSONPatch{{op: "add", path: "/metadata/labels/account", value: {seen}}}]'

    def label() -> str | None:
        found: str | None = space.create(pod("p"), dry_run=True)["metadata"]["labels"].get(
            "account"
        )
        return found

    with guarded(space.plane, mutating(space, f"see-{space.name}", written), lambda: bool(label())):
        assert label() == "default"


def test_any_account_of_the_namespace_can_be_named_by_who_creates_pods(space: Space) -> None:
    """So the field is the author's word. An account that is not there is refused."""
    named = pod("p", serviceAccountName="trainer")
    done = space.kubectl.run("create", "-f", "-", *AUTHOR, stdin=json.dumps(named))
    assert done.returncode == 0, done.stderr
    assert set(stamp(space.get("pods", "p"))["policies"]) == {"training"}
    missing = pod("q", serviceAccountName="no-such")
    done = space.kubectl.run("create", "-f", "-", *AUTHOR, stdin=json.dumps(missing))
    mentions(done.stderr, 'serviceaccount "no-such" not found')


def test_an_account_that_is_changed_after_us_is_matched_in_a_second_call(space: Space) -> None:
    """Policies for the new account apply, and what those for the old one wrote stays."""
    renamed = (
        'has(object.metadata.annotations) && "unset" in object.metadata.annotations ? '
        '[JSONPatch{op: "replace", path: "/spec/serviceAccountName", value: "late"}] : '
        '[JSONPatch{op: "add", path: "/metadata/labels/seen", value: "yes"}]'
    )

    def made() -> Json:
        return space.create(pod("p"), dry_run=True)

    def in_force() -> bool:
        return bool(made()["spec"]["serviceAccountName"] == "late")

    with guarded(space.plane, mutating(space, f"late-{space.name}", renamed), in_force):
        pod_made = made()
    assert pod_made["metadata"]["annotations"]["late"] == "yes"
    assert pod_made["metadata"]["annotations"]["unset"] == "yes"
    assert set(stamp(pod_made)["policies"]) == {"late"}
