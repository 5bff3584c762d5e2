"""Policies that are objects are judged before they are stored, as whoever uses kubectl sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.test_shipped_policies import SHIPPED
from tests.cluster.webhooks import erase, serving_objects
from tests.objects import an_object, required_affinity
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import Webhook
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.policy_fixtures"]

REFUSED = 'admission webhook "policies.fairlead.dev" denied the request: fairlead: '


@pytest.fixture(scope="module")
def judging(policy_api: ControlPlane) -> Iterator[Webhook]:
    """The webhook over the cluster's policies, registered for writes of them."""
    with serving_objects(policy_api, "--nodes", "--log-level", "debug") as running:
        yield running.webhook


@pytest.fixture
def kubectl(
    policy_api: ControlPlane, judging: Webhook, cluster_kubectl: Kubectl
) -> Iterator[Kubectl]:
    """kubectl for a cluster that judges writes, and has no policies."""
    assert judging.url
    yield cluster_kubectl
    erase(policy_api)


def text(kind: str, name: str, **spec: Any) -> str:
    document = an_object(names.API_VERSION, kind, name)
    return "---\n" + yaml.safe_dump({**document, "spec": spec})


def policy(name: str, **spec: Any) -> str:
    return text(names.POLICY_KIND, name, **spec)


def setting(of: str, name: str = "setting") -> str:
    """A policy that prefers a class."""
    return policy(name, overrides={"capacity": [{"class": of, "mode": "Prefer"}]})


SPOT = text(names.CLASS_KIND, "spot", nodes=[{"labels": {"lifecycle": "spot"}}])
ON_DEMAND = text(names.CLASS_KIND, "on-demand", complementOf="spot")


def apply(kubectl: Kubectl, manifest: str, *flags: str) -> tuple[int, str]:
    """Exit code of `kubectl apply`, and what it says on stderr."""
    done = kubectl.run("apply", *flags, "-f", "-", stdin=manifest)
    return done.returncode, done.stderr


def refusal(kubectl: Kubectl, manifest: str, *flags: str) -> str:
    """Why the webhook refuses what is applied."""
    code, said = apply(kubectl, manifest, *flags)
    assert code == 1, said
    assert REFUSED in said
    return said.split(REFUSED)[1].strip()


def warnings(kubectl: Kubectl, manifest: str) -> list[str]:
    """What the webhook warns of, of that which is applied, but for what is about nodes."""
    code, said = apply(kubectl, manifest)
    assert code == 0, said
    before = "Warning: fairlead: "
    found = [line.removeprefix(before) for line in said.splitlines() if "Warning: " in line]
    return [line for line in found if "none of the" not in line]


def test_an_unknown_class_is_refused_with_the_cure(kubectl: Kubectl) -> None:
    """Every one at once, and in a dry run as well; nothing of it is stored."""
    apply(kubectl, SPOT)
    there = "(classes: spot)"
    settings = [{"class": each, "mode": "Prefer"} for each in ("spt", "large")]
    manifest = policy("setting", overrides={"capacity": settings})
    for flags in ([], ["--dry-run=server"]):
        head, first, second = refusal(kubectl, manifest, *flags).splitlines()
        assert head == "2 errors:"
        field = "- spec.overrides.capacity"
        mentions(first, f"{field}[0].class:", "'spt'", there, "did you mean 'spot'?")
        mentions(second, f"{field}[1].class:", "'large'", there, "create the class")
    assert kubectl.json("get", "placementpolicies")["items"] == []


def test_a_class_can_be_deleted_only_when_no_policy_names_it(kubectl: Kubectl) -> None:
    """Those who do are named; once they are gone it goes, at once."""
    apply(kubectl, SPOT + ON_DEMAND + setting("spot"))
    done = kubectl.run("delete", "capacityclass", "spot")
    assert done.returncode == 1
    (line,) = done.stderr.split(REFUSED)[1].splitlines()
    assert line.startswith("class 'spot' ")
    named = "by class 'on-demand', policy 'setting' "
    mentions(line, named, "(capacityclasses/on-demand: spec.complementOf)", "change or delete")
    kubectl("delete", "pp/setting", "cc/on-demand", "cc/spot")


def test_a_class_and_who_names_it_can_be_applied_together(kubectl: Kubectl) -> None:
    """The one before the other, as kubectl sends them: no replica has to have heard of it yet."""
    for at in range(3):
        classes = text(names.CLASS_KIND, f"c{at}", nodes=[{"labels": {"c": f"{at}"}}])
        code, said = apply(kubectl, classes + setting(f"c{at}", f"setting-{at}"))
        assert code == 0, said
    late = text(names.CLASS_KIND, "late", nodes=[{"labels": {"c": "late"}}])
    mentions(refusal(kubectl, setting("late") + late), "no capacity class 'late'")


def test_all_that_ships_can_be_applied(kubectl: Kubectl) -> None:
    """In the order of the folder, classes first; only nodes and PriorityClasses may be missing."""
    files = [flag for path in SHIPPED for flag in ("-f", str(path))]
    done = kubectl.run("apply", *files)
    assert done.returncode == 0, done.stderr
    for line in done.stderr.splitlines():
        assert "no PriorityClass" in line or ("none of the" in line and " nodes" in line), line


def test_many_large_policies_are_written_and_say_what_is_not_checked(kubectl: Kubectl) -> None:
    """Each is answered in the time of the API server, by the same budget under any load."""
    terms = [
        {
            "matchExpressions": [
                {"key": f"k{(at + more) % 20}", "operator": "In", "values": [f"value-{at}", "w"]}
                for more in range(15)
            ]
        }
        for at in range(30)
    ]
    large = "".join(
        policy(f"large-{at:02}", priority=at, requirements={"affinity": required_affinity(*terms)})
        for at in range(40)
    )
    code, said = apply(kubectl, large, "--server-side")
    assert code == 0, said
    assert said.count("it is not checked together") >= 30
    mentions(said, "policy 'large-39': spec: it is not checked together", "Satisfiable")
    mentions(refusal(kubectl, setting("spt"), "--server-side"), "'spt'")


def test_a_key_without_a_value_is_reported_although_the_api_server_drops_it(
    kubectl: Kubectl,
) -> None:
    """What kubectl sends as null arrives as an empty mapping."""
    manifest = policy("keys", defaults={"schedulerName": "x"}, overrides={"nodeSelector": {}})
    manifest = manifest.replace("nodeSelector: {}", "nodeSelector: {pool: }")
    (line,) = warnings(kubectl, manifest)
    mentions(line, "spec.overrides.nodeSelector: ", "is empty and sets nothing")
    (line,) = warnings(
        kubectl, policy("empty", defaults={"schedulerName": "x", "nodeSelector": {}})
    )
    mentions(line, "spec.defaults.nodeSelector", "is empty and sets nothing")


def test_of_many_policies_in_one_file_each_warning_names_its_own(kubectl: Kubectl) -> None:
    """kubectl prints them below each other, and says of none which object it is about."""
    one_node = policy("one-node", defaults={"nodeSelector": {names.HOSTNAME_LABEL: "node-1"}})
    empty = policy("empty", defaults={"schedulerName": "x", "nodeSelector": {}})
    lines = warnings(kubectl, one_node + SPOT + empty)
    assert sorted(line.split(":")[0] for line in lines) == ["policy 'empty'", "policy 'one-node'"]
