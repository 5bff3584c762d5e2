"""From a Run to the manifests of all that is made for it; the golden cases show most of it."""

from __future__ import annotations

import copy
from base64 import b64decode
from typing import Any

import pytest

from tests.run.runs import UID, a_run, containers, spec_of
from tests.wording import mentions
from webhook import names
from webhook.errors import InvalidRun
from webhook.run.plan import Plan, plan


def planned(**spec: Any) -> Plan:
    """The plan of a run called r; its template has one container, main."""
    return plan(a_run("r", {"template": spec_of(containers("main")), **spec}))


def test_a_pod_tells_the_attempt_that_it_belongs_to() -> None:
    """By an annotation, so that a later attempt's pods are told apart."""
    made = planned()
    attempts = [
        made.pod("master", 0, attempt)["metadata"]["annotations"][names.ATTEMPT]
        for attempt in (0, 7)
    ]
    assert attempts == ["0", "7"]


def test_making_a_pod_changes_no_other() -> None:
    """Pods share their parts, and a later one leaves an earlier one as it was."""
    made = planned(framework="pytorch", replicas={"master": {}, "worker": {"count": 2}})
    first = made.pod("worker", 0, 0)
    before = copy.deepcopy(first)
    made.pod("worker", 1, 3)
    assert first == before == made.pod("worker", 0, 0)


def test_a_plan_leaves_the_run_as_it_is() -> None:
    """Its templates are shared with a cache."""
    spec = {
        "template": spec_of(containers("main", "side"), initContainers=containers("fetch")),
        "framework": "mpi",
        "environment": {"nodeSelector": {"a": "b"}},
        "replicas": {"launcher": {}, "worker": {"resources": {"limits": {"cpu": 1}}}},
    }
    run = a_run("r", spec)
    before = run.model_dump()
    made = plan(run)
    made.pod("worker", 0, 0)
    made.pod("launcher", 0, 0)
    assert run.model_dump() == before


def test_resources_replace_the_ones_before_them_whole() -> None:
    """Of the template, then of the role, then of the replica."""
    own = {"limits": {"cpu": 1}, "requests": {"memory": "1Gi"}}
    template = spec_of([{"name": "main", "image": "i", "resources": own}])
    made = planned(
        template=template,
        framework="jax",
        replicas={
            "worker": {
                "count": 3,
                "resources": {"limits": {"memory": "2Gi"}},
                "byIndex": [{"index": 1, "resources": {}}, {"index": 2}],
            }
        },
    )
    found = [made.pod("worker", i, 0)["spec"]["containers"][0]["resources"] for i in range(3)]
    assert found == [{"limits": {"memory": "2Gi"}}, {}, {"limits": {"memory": "2Gi"}}]
    alone = planned(template=template).pod("master", 0, 0)
    assert alone["spec"]["containers"][0]["resources"] == own


def test_the_gpus_of_every_replica_are_known_to_the_rendezvous() -> None:
    """Of the template, the role or the replica, whoever speaks last."""
    made = planned(
        template=spec_of(
            [{"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]
        ),
        framework="pytorch",
        replicas={
            "master": {},
            "worker": {
                "count": 3,
                "resources": {"limits": {"amd.com/gpu": 4}},
                "byIndex": [{"index": 1, "resources": {"limits": {"cpu": 1}}}],
            },
        },
    )
    assert made.gang.devices == {"master": (2,), "worker": (4, 0, 4)}


def test_the_gang_has_the_labels_and_the_account_of_the_pods() -> None:
    """For pods that a replica makes itself, as Spark's driver does."""
    template = spec_of(containers("main"), serviceAccountName="spark")
    template["metadata"] = {"labels": {"team": "a"}}
    made = planned(template=template, environment={"labels": {"cost": "1"}})
    assert made.gang.service_account == "spark"
    assert made.gang.labels.items() >= {
        ("team", "a"),
        ("cost", "1"),
        (names.RUN, "r"),
        (names.KIND, "job"),
    }


def test_missing_variables_are_reported_with_the_other_errors() -> None:
    """A run too large for TF_CONFIG, with a template that restarts in place."""
    with pytest.raises(InvalidRun) as caught:
        planned(
            template=spec_of(containers("main"), restartPolicy="Always"),
            framework="tensorflow",
            replicas={"worker": {"count": 9000}},
        )
    first, second = caught.value.problems
    mentions(first, "spec.template.spec.restartPolicy: ", "'Always'")
    mentions(second, "spec.replicas: ", "TF_CONFIG", "9000 replicas")


def test_keys_are_kept_in_a_secret_of_the_run() -> None:
    """Of the type that Kubernetes has for them; the plan itself makes no keys."""
    made = planned(framework="mpi", replicas={"launcher": {}, "worker": {}})
    assert made.needs.keys
    assert made.keys_secret == f"r-ssh-{UID[:8]}"
    secret = made.keys_secret_manifest(made.keys_secret, "private", "public")
    assert secret["type"] == "kubernetes.io/ssh-auth"
    assert secret["metadata"]["name"] == made.keys_secret
    assert secret["metadata"]["ownerReferences"][0]["uid"] == UID
    data = {key: b64decode(value).decode() for key, value in secret["data"].items()}
    assert data == {"ssh-privatekey": "private", "ssh-publickey": "public"}


def test_a_run_without_shared_files_needs_neither_config_map_nor_keys() -> None:
    """What is not needed is not made."""
    made = planned()
    assert made.config_map() is None
    assert made.keys_secret is None
    assert made.main_container == "main"


def test_replicas_that_differ_share_a_large_template() -> None:
    """A thousand of them, over thousands of containers, would take gigabytes."""
    made = planned(
        template=spec_of(containers("main"), initContainers=containers(*map(str, range(100)))),
        framework="jax",
        replicas={
            "worker": {
                "count": 50,
                "byIndex": [
                    {"index": index, "environment": {"labels": {"a": str(index)}}}
                    for index in range(50)
                ],
            }
        },
    )
    pods = [made.pod("worker", index, 0) for index in (0, 49)]
    assert [pod["metadata"]["labels"]["a"] for pod in pods] == ["0", "49"]
    assert pods[0]["spec"]["initContainers"] is pods[1]["spec"]["initContainers"]
    assert len({id(draft.template) for draft in made.special.values()}) == 1
    assert len({id(draft.below) for draft in made.special.values()}) == 1
