"""Exceptions in a real cluster: a pod passes while one is in force, and is refused after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from subprocess import CompletedProcess

import pytest
from click.testing import CliRunner, Result

from tests.cluster.manifests import Json, pod
from tests.cluster.rule_cases import an_exception, mine, path_of
from tests.cluster.spaces import NewNamespace, Running, Space, is_stamped, stamp
from tests.cluster.tables import columns
from tests.cluster.webhooks import serving_objects
from tests.control_planes import clear_namespace
from tests.eventually import eventually
from tests.wording import line_with, mentions
from webhook import names
from webhook.cli import fairlead
from webhook.policy.crd.definitions import RESOURCES
from webhook.sandbox.control_plane import ControlPlane
from webhook.times import to_second

pytest_plugins = ["tests.cluster.policy_fixtures", "tests.cluster.webhook_fixtures"]

DEBUGGED = {names.RUN: "leak", "debug": "anna"}
ARM = {"nodeSelector": {"kubernetes.io/arch": "arm64"}}
REASON = "Anna looks for a leak."


@pytest.fixture(scope="module")
def watching(policy_api: ControlPlane) -> Iterator[Running]:
    """The webhook over the cluster's policies: runs of namespaces that are tested need amd64."""
    policy = {
        "match": {"namespaceSelector": {"matchLabels": {"test": "exceptions"}}},
        "requirements": {"nodeSelector": {"kubernetes.io/arch": "amd64"}},
    }
    with serving_objects(policy_api, "--log-level", "debug") as running:
        policy_api.api.create(path_of(names.POLICY_KIND), mine(names.POLICY_KIND, policy))
        yield running


@pytest.fixture
def space(watching: Running, new_namespace: NewNamespace) -> Iterator[Space]:
    """A namespace in which the policy holds, and no exception."""
    assert watching.webhook.url
    made = new_namespace({"test": "exceptions"})
    held = "nodeSelector[kubernetes.io/arch]: must be"
    eventually("the policy holds", lambda: held in tried(made).stderr)
    yield made
    made.plane.api.delete(f"/apis/{names.API_VERSION}/{names.PLACEMENT_EXCEPTIONS}")


def tried(space: Space, name: str = "tried", *options: str) -> CompletedProcess[str]:
    """Try to create the pod that is debugged; unless told otherwise nothing is stored."""
    manifest = json.dumps(pod(name, labels=DEBUGGED, **ARM))
    flags = options or ("--dry-run=server",)
    return space.kubectl.run("create", "-f", "-", *flags, stdin=manifest)


def excepted(space: Space, until: datetime) -> None:
    """Have an exception for debugged pods in the namespace that ends at that moment."""
    match = {"namespaces": [space.name], "podSelector": {"matchLabels": {"debug": "anna"}}}
    document = an_exception(match=match, until=to_second(until), reason=REASON)
    space.kubectl("apply", "-f", "-", stdin=json.dumps(document))


def command(space: Space, *words: str) -> Result:
    """`fairlead policy exceptions` of this cluster."""
    options = ["policy", "exceptions", "--kubeconfig", str(space.plane.kubeconfig), *words]
    return CliRunner().invoke(fairlead, options)


def test_a_stamp_that_an_author_copies_hides_no_use_of_an_exception(
    space: Space, watching: Running
) -> None:
    """Twelve pods under one generateName are twelve uses, whatever they say of who sent what."""
    excepted(space, datetime.now(UTC) + timedelta(hours=3))
    eventually("the exception is in force", lambda: not tried(space).returncode)
    counted = partial(
        watching.metric, "fairlead_exceptions_applied_total", exception="mine", policy="mine"
    )
    before, plain = counted(), pod("", labels=DEBUGGED, **ARM)
    plain["metadata"] = {"generateName": "leak-", "labels": DEBUGGED}
    stamped = {names.PLACEMENT: space.create(plain)["metadata"]["annotations"][names.PLACEMENT]}
    copied = {**plain, "metadata": {**plain["metadata"], "annotations": stamped}}
    record = {
        "manager": "kubectl-create",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}},
    }
    forged = {**copied, "metadata": {**copied["metadata"], "managedFields": [record]}}
    emptied = {**copied, "metadata": {**copied["metadata"], "managedFields": [{}]}}
    for sent in (copied, plain, forged, plain, emptied, plain, copied, plain, forged):
        assert stamp(space.create(sent))["exceptions"] == {"mine": ["mine"]}
    named = {**plain, "metadata": {"name": "applied", "labels": DEBUGGED, "annotations": stamped}}
    options = ("apply", "--server-side", "-f", "-")
    space.kubectl(*options, "--field-manager=me", stdin=json.dumps(named))
    named["metadata"]["name"] = "applied-2"
    space.kubectl(*options, stdin=json.dumps(named))
    assert counted() == before + 12


def test_a_pod_passes_until_the_exception_ends_and_is_refused_with_a_warning_after_it(
    space: Space, watching: Running
) -> None:
    """Stamp, audit log, metric and the table of kubectl say that it did, and why."""
    now = datetime.now(UTC)
    later = now + timedelta(hours=3)
    excepted(space, later)
    eventually("the exception is in force", lambda: not tried(space).returncode)
    # Once only, for the audit log has the tries that were refused as well.
    assert tried(space, "leak", "-o", "name").returncode == 0
    seen = space.get("pods", "leak")
    assert seen["spec"]["nodeSelector"] == ARM["nodeSelector"]
    said = stamp(seen)
    assert (said["exceptions"], said["policies"]) == ({"mine": ["mine"]}, {})
    (annotations,) = space.audited("leak")
    (told,) = (v for k, v in annotations.items() if k.endswith("/exceptions"))
    assert json.loads(told) == {"mine": ["mine"]}
    counted = "fairlead_exceptions_applied_total"
    assert watching.metric(counted, exception="mine", policy="mine") >= 1
    # Only the pods that it matches.
    other = json.dumps(pod("other", **ARM))
    assert "mine" in space.kubectl.run("create", "-f", "-", stdin=other).stderr
    (row,) = columns(space.kubectl("get", "pe"))
    assert row.pop("AGE")
    until = to_second(later)
    # Without a controller nobody says whether it is in force, nor what is a list in its spec.
    cells = {"POLICIES": "", "UNTIL": until, "IN FORCE": "", "REASON": REASON}
    assert row == {"NAME": "mine", **cells}
    result = command(space, "-o", "json")
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)["exceptions"]
    assert (found["inForce"], found["until"], found["pods"]) == (True, until, 1)

    end = datetime.now(UTC) + timedelta(seconds=2)
    excepted(space, end)

    def refusal() -> CompletedProcess[str] | None:
        done = tried(space)
        return done if done.returncode else None

    refused = eventually("the exception has ended", refusal)
    assert datetime.now(UTC) >= end.replace(microsecond=0)
    ended = f"exception mine ended at {to_second(end)}"
    line_with(refused.stderr, f"Warning: fairlead: pod tried: {ended}", "would have set aside")
    assert "must be 'amd64'" in refused.stderr
    # Who passed stays.
    assert is_stamped(space.get("pods", "leak"))
    assert "No exceptions in force." in command(space, "--in-force").stdout
    (row,) = columns(command(space).stdout)
    assert (row["IN FORCE"], row["UNTIL"]) == ("False", to_second(end))


def test_an_exception_selects_by_labels_of_the_author(space: Space) -> None:
    """Whoever may create pods where it matches may take its label; a namespace nobody can take."""
    space.kubectl("create", "rolebinding", "author", "--clusterrole=edit", "--user=author")
    excepted(space, datetime.now(UTC) + timedelta(hours=1))
    as_author = ("--dry-run=server", "--as", "author")
    eventually(
        "the exception is in force", lambda: not tried(space, "tried", *as_author).returncode
    )
    manifest = json.dumps(pod("elsewhere", labels=DEBUGGED, **ARM))
    elsewhere = f"{space.name}-b"
    space.plane.create_namespace(elsewhere, {"test": "exceptions"})
    done = space.kubectl.within(elsewhere).run(
        "create", "--dry-run=server", "-f", "-", stdin=manifest
    )
    clear_namespace(space.plane, elsewhere)
    assert "must be 'amd64'" in done.stderr


def test_writes_of_exceptions_are_judged_with_the_whole_set(space: Space) -> None:
    """Warned of are slips and ends that have passed; what one selects by no policy may write."""
    excepted(space, datetime.now(UTC) + timedelta(hours=1))
    slip = an_exception(policies=["main"], until="2026-01-01T00:00:00Z")
    done = space.kubectl.run("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(slip))
    line_with(done.stderr, "Warning:", "no policy 'main'")
    line_with(done.stderr, "Warning:", "spec.until: has ended")
    writing = mine(names.POLICY_KIND, {"overrides": {"labels": {"debug": "anna"}}})
    writing["metadata"]["name"] = "writing"
    done = space.kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(writing))
    mentions(done.stderr, "exception mine (spec.match.podSelector)")


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_only_cluster_admins_may_write_exceptions(space: Space, role: str) -> None:
    """Not even whoever owns the namespace."""
    kubectl = space.kubectl
    kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}")
    written: Json = an_exception(match={"namespaces": [space.name]})
    done = kubectl.run("create", "-f", "-", "--as", role, stdin=json.dumps(written))
    assert "cannot create resource" in done.stderr
    for verb in ("create", "update", "patch", "delete"):
        asked = kubectl.run("auth", "can-i", verb, RESOURCES[names.EXCEPTION_KIND], "--as", role)
        assert asked.stdout.strip() == "no", verb
