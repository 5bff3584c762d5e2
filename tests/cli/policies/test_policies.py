"""What is told of a cluster's policies, of all that an API server says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from tests.kube.fake_api import answer_of
from tests.wording import Wording, mentions
from webhook import names, validating
from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.live.focus import NoSuchPolicy
from webhook.cli.options import CLUSTER, Where
from webhook.cli.policies import report
from webhook.cli.policies.policies_in_force import (
    PoliciesInForce,
    for_whom,
    pods_of,
    policy_rows,
    where,
)
from webhook.cli.policies.reading import gather
from webhook.errors import UnreadableInput
from webhook.interception import webhooks
from webhook.judgement.set_judgement import load_objects
from webhook.policy.model import PlacementPolicy

Json = dict[str, Any]
GROUP = "/apis/fairlead.dev/v1alpha1"
SYSTEM = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
PARTS = {"defaults", "overrides", "requirements"}
WEBHOOK = "app.kubernetes.io/name=fairlead,app.kubernetes.io/component=webhook"


def policy(name: str, status: Json | None = None, **spec: object) -> Json:
    """A policy of the cluster."""
    return {
        "metadata": {"name": name},
        "spec": spec if PARTS & {*spec} else {"defaults": {"nodeSelector": {"a": "b"}}, **spec},
        "status": status or {},
    }


def pod(name: str, role: str, *stamped: str, run: bool = True) -> Json:
    """A live pod of a run."""
    stamp = json.dumps({"set": "x", "policies": {policy: [] for policy in stamped}})
    labels = {names.RUN: "r", names.ROLE: role} if run else {}
    annotations = {names.PLACEMENT: stamp} if stamped else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "research",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": "main"}]},
    }


POLICIES = (
    policy("workers", match={"roles": ["worker"]}, priority=5),
    policy("notebooks", match={"kinds": ["notebook"]}),
    policy(
        "counted",
        {
            "since": "2026-11-01T00:00:00Z",
            "podsDecided": 7,
            "lastMatch": "2026-11-02T00:00:00Z",
            "conditions": [{"type": "Accepted", "status": "False", "message": "wrong somewhere"}],
            "servedHashes": [{"replica": "seen-0", "hash": "0123456789abcdef"}],
        },
        match={"kinds": ["build"]},
    ),
)
SENDING = {"metadata": {}, "webhooks": webhooks(url="https://example.com")}
PODS = (
    pod("w-0", "worker", "workers"),
    pod("w-1", "worker"),
    pod("p-0", "ps", "workers", "gone"),
    pod("other", "worker", run=False),
)


def the_hash(policies: Sequence[Json] = POLICIES) -> str:
    """The hash of these policies, as stamps have it."""
    objects = {
        f"placementpolicies/{each['metadata']['name']}": json.dumps(
            {**each, "apiVersion": names.API_VERSION, "kind": "PlacementPolicy", "status": None}
        ).encode()
        for each in policies
    }
    return load_objects(objects).policies.hash[:HASH_LENGTH]


def metrics(digest: str, *, began: int = 1793606400, **decided: int) -> str:
    """What a replica says that began then, in seconds since 1970."""
    counts = [
        f'fairlead_decisions_total{{policy="{name}",result="placed"}} {count}'
        for name, count in decided.items()
    ]
    lines = [
        f'fairlead_policy_set_info{{hash="{digest}"}} 1',
        f"process_start_time_seconds {began}",
        *counts,
    ]
    return "\n".join(lines) + "\n"


def gathered(
    folder: Path,
    replicas: dict[str, str] | None = None,
    policies: Sequence[Json] = POLICIES,
    arguments: Sequence[str] = ("--policies-from-cluster",),
    where: Sequence[Where] = (),
    sending: Json | None = SENDING,
    pods: Sequence[Json] = PODS,
    daemon_sets: Sequence[Json] = (),
) -> PoliciesInForce:
    """All that is read of an API server with these replicas."""
    known: dict[str, Any] = {
        f"{GROUP}/placementpolicies": policies,
        f"{GROUP}/capacityclasses": (),
        f"{GROUP}/placementexceptions": (),
        f"{GROUP}/runsources": (),
        "/api/v1/namespaces": ({"metadata": {"name": "research"}},),
        "/apis/scheduling.k8s.io/v1/priorityclasses": (),
        "/api/v1/pods": pods,
        "/apis/apps/v1/daemonsets": daemon_sets,
        SYSTEM: [
            {
                "metadata": {"name": name, "uid": name},
                "spec": {"containers": [{"ports": [{"name": "health", "containerPort": 8081}]}]},
                "status": {"phase": "Running", "podIP": "10.0.0.1"},
            }
            for name in replicas or ()
        ],
    }
    where_it_runs = f"/apis/apps/v1/namespaces/{names.NAMESPACE}/deployments"
    admission = "/apis/admissionregistration.k8s.io/v1"
    version = {"groupVersion": "apps/v1", "version": "v1"}
    group = {"name": "apps", "preferredVersion": version, "versions": [version]}
    known |= {
        f"{SYSTEM}/{name}:8081/proxy/metrics": text for name, text in (replicas or {}).items()
    }
    known |= {
        f"{where_it_runs}/fairlead-webhook": {
            "spec": {"template": {"spec": {"containers": [{"args": list(arguments)}]}}}
        },
        f"{admission}/mutatingwebhookconfigurations/fairlead": sending,
        f"{admission}/validatingwebhookconfigurations/fairlead": {
            "webhooks": [{"name": validating.POLICIES}]
        },
        "/apis": {"groups": [group]},
        "/apis/apps/v1": {
            "resources": [{"name": "daemonsets", "kind": "DaemonSet", "verbs": ["list"]}]
        },
        "/api/v1": {"resources": []},
    }
    return answer_of(known, folder, lambda client: gather(client, where, "", pods=True))


def plain(lines: Sequence[str]) -> list[str]:
    """With single blanks."""
    return [" ".join(line.split()) for line in lines]


def test_policies_are_listed_in_the_order_in_which_they_win(
    tmp_path: Path, wording: Wording
) -> None:
    """With what matches now, and what is counted: by the status, else by replicas."""
    found = gathered(tmp_path, {"r-0": metrics(the_hash(), workers=3), "r-1": metrics(the_hash())})
    lines = plain(list(report.listed(found)))
    heads = ("PRIORITY", "POLICY", "ENFORCED", "LIVE PODS", "WORKLOADS", "PODS DECIDED")
    assert [line.split() for line in lines[2:6]] == [
        " ".join((*heads, "LAST", "FOR")).split(),
        ["5", "workers", "everywhere", "2", "0", "3", "never", "roles", "worker"],
        ["0", "counted", "everywhere", "0", "0", "7", "2026-11-02T00:00:00Z", "kinds", "build"],
        ["0", "notebooks", "everywhere", "0", "0", "0", "never", "kinds", "notebook"],
    ]
    wording(f"{lines[0]}\n{click.unstyle(lines[7])}", {the_hash(): "HASH"})
    assert [row.accepted for row in policy_rows(found)] == [
        None,
        False,
        None,
    ]


def test_replicas_with_another_set_and_missing_policies_are_reported(
    tmp_path: Path, wording: Wording
) -> None:
    """Of one replica or of several; and where policies may be, if not in the cluster."""
    other = "0123456789abcdef"
    (first, *_) = report.listed(gathered(tmp_path, {"r-0": metrics(other)}))
    wording(click.unstyle(first), {the_hash(): "HASH"})
    some = {"r-0": metrics(other), "r-1": metrics(the_hash())}
    (first, *_) = report.listed(gathered(tmp_path, some))
    wording(click.unstyle(first), {the_hash(): "HASH"})
    (*_, last) = report.listed(gathered(tmp_path, policies=()))
    wording(last)


def test_a_policys_pods_are_those_that_it_touched_and_those_that_it_would(
    tmp_path: Path, wording: Wording
) -> None:
    """By stamp and by a match now; a policy that is gone still has those that it touched."""
    found = gathered(tmp_path)
    told = pods_of(found, "workers")
    assert [each.name for each in told.touches] == ["w-0"]
    assert [each.name for each in told.would] == ["w-1"]
    (no_more,) = told.no_more
    assert no_more.name == "p-0"
    mentions(str(no_more.why), "match.roles: role is ps", "worker")
    shown = plain(list(report.pods(found, pods_of(found, "workers"))))
    mentions(" ".join(shown), f"1 research p-0: {no_more.why}")
    wording("\n".join(map(click.unstyle, shown)))
    tried = (policy("workers", match={"roles": ["worker"]}, enforcement="Audit"),)
    for policies, said in ((POLICIES, False), (tried, True)):
        now = gathered(tmp_path, policies=policies)
        told_now = report.pods(now, pods_of(now, "workers"))
        assert any(line.startswith("under Audit") for line in told_now) == said
    (gone,) = pods_of(found, "gone").no_more
    wording(str(gone.why))
    with pytest.raises(NoSuchPolicy, match="did you mean workers"):
        pods_of(found, "worker")


def test_pods_that_are_not_sent_to_the_webhook_are_touched_by_no_policy(tmp_path: Path) -> None:
    """By its configuration; those that were stamped once say why not any more."""
    selector = {"matchExpressions": [{"key": "other", "operator": "Exists"}]}
    sending = {"metadata": {}, "webhooks": [{"objectSelector": selector}]}
    told = pods_of(gathered(tmp_path, sending=sending), "workers")
    assert (told.touches, told.would) == ([], [])
    assert [each.name for each in told.no_more] == ["w-0", "p-0"]
    assert all("not sent to the webhook" in str(each.why) for each in told.no_more)


def test_a_policy_that_leaves_a_pod_alone_does_not_count_it(tmp_path: Path) -> None:
    """DaemonSets' pods and pods of another system, as explain decides; requirements count."""
    agent = pod("agent-0", "worker", "over")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "u"}
    agent["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    windows = pod("w-0", "worker")
    windows["spec"]["os"] = {"name": "windows"}
    template = {"metadata": {"labels": {names.RUN: "r"}}, "spec": windows["spec"] | {"os": None}}
    daemon_set = {
        "metadata": {"name": "a", "namespace": "research", "uid": "u"},
        "spec": {"template": template},
    }
    linux = {"nodeSelector": {"kubernetes.io/os": "linux"}}
    policies = (
        policy("over", overrides={"nodeSelector": {"a": "b"}}),
        policy("linux", defaults=linux),
        policy("tried", defaults=linux, enforcement="Audit"),
        policy("must", requirements={"nodeSelector": {"c": "d"}}),
    )
    found = gathered(tmp_path, policies=policies, pods=(agent, windows), daemon_sets=(daemon_set,))
    counted = {row.name: (row.pods_matching, row.templates_matching) for row in policy_rows(found)}
    assert counted == {"over": (1, 0), "linux": (0, 0), "tried": (0, 0), "must": (2, 1)}
    assert [row.name for row in policy_rows(found) if row.never] == ["linux", "tried"]
    (no_more,) = pods_of(found, "over").no_more
    mentions(str(no_more.why), "matches", "requires nothing", "DaemonSet")


def test_labels_that_a_binding_adds_match_no_policy(tmp_path: Path) -> None:
    """The webhook does not see them when the pod is created, and explain does not count them."""
    zone = {"topology.kubernetes.io/zone": "a"}
    bound, waiting = pod("bound", "worker"), pod("waiting", "worker")
    bound["spec"]["nodeName"] = "n"
    for each in bound, waiting:
        each["metadata"]["labels"] |= zone
    policies = (policy("by-zone", match={"podSelector": {"matchLabels": zone}}),)
    found = gathered(tmp_path, policies=policies, pods=(bound, waiting))
    would = pods_of(found, "by-zone").would
    assert [each.name for each in would] == ["waiting"]


def test_that_no_pod_is_sent_is_noted(tmp_path: Path, wording: Wording) -> None:
    """A table that tells of no pods would look as if none matched."""
    found = gathered(tmp_path, sending=None)
    note = found.notes[-1]
    wording(note)
    assert not any(pod.matching for pod in found.pods)


def test_policies_that_never_matched_are_reported_with_the_start_of_counting(
    tmp_path: Path, wording: Wording
) -> None:
    """The latest of all times from which is counted; unknown if nobody counts."""
    counted = gathered(tmp_path, {"r-0": metrics(the_hash())})
    assert [row.name for row in policy_rows(counted) if row.never] == ["notebooks"]
    (said, *_) = report.never(counted)
    (unknown, *_) = report.never(gathered(tmp_path))
    assert "since" not in unknown
    wording(f"{said}\n{unknown}")


def test_what_never_matched_is_known_since_the_last_replica_began(tmp_path: Path) -> None:
    """One that ended before may have counted what nobody knows any more."""
    replicas = {"r-0": metrics(the_hash()), "r-1": metrics(the_hash(), began=1793692800)}
    (said, *_) = report.never(gathered(tmp_path, replicas))
    assert "since 2026-11-03T08:00:00Z:" in said


def test_a_replica_that_answers_with_no_metrics_is_reported(
    tmp_path: Path, wording: Wording
) -> None:
    """A proxy's page, say: the policies are shown all the same."""
    found = gathered(tmp_path, {"r-0": 'fairlead_decisions_total{policy="a'})
    wording(found.notes[0])
    assert len(policy_rows(found)) == 3


def test_the_cluster_and_a_folder_are_not_one_set(tmp_path: Path) -> None:
    """Whichever comes first, the other is not left out in silence."""
    for both in (CLUSTER, tmp_path), (tmp_path, CLUSTER):
        with pytest.raises(click.UsageError, match=r"cluster.* paths"):
            gathered(tmp_path, where=both)


def test_a_folder_without_a_policy_file_is_an_error(tmp_path: Path) -> None:
    """It is most likely not the folder that was meant."""
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UnreadableInput, match="no policy file"):
        gathered(tmp_path, where=(empty,))


@pytest.mark.parametrize(
    ("sets", "same"),
    [
        (["", ""], True),
        (["", "f" * 64], False),
        (["f" * 64, "f" * 64], False),
    ],
    ids=["same", "apart", "other"],
)
def test_replicas_are_held_against_the_clusters_objects(
    tmp_path: Path, sets: list[str], same: bool, wording: Wording
) -> None:
    """And against each other."""
    replicas = {f"r-{at}": metrics(each or the_hash()) for at, each in enumerate(sets)}
    found = gathered(tmp_path, replicas)
    assert found.same_set is same
    verdict = click.unstyle([*report.replicas(found)][-1])
    wording(verdict, {the_hash(): "HASH"})


def test_a_webhook_that_serves_files_is_not_held_against_objects(tmp_path: Path) -> None:
    """Its replicas are held against each other alone."""
    replicas = {name: metrics("f" * 64) for name in ("a", "b")}
    found = gathered(tmp_path, replicas, arguments=("--policies=/policies",))
    assert found.same_set
    assert "(the cluster)" not in "\n".join(report.replicas(found))


def test_where_replicas_cannot_be_asked_the_statuses_tell(tmp_path: Path, wording: Wording) -> None:
    """What the controller saw last; the reason is noted."""
    found = gathered(tmp_path)
    assert [tuple(each) for each in found.served or ()] == [("seen-0", "0123456789abcdef")]
    (note,) = found.notes
    wording(note)


def test_policies_that_do_not_compile_are_reported(tmp_path: Path, wording: Wording) -> None:
    """With everything that is wrong; the last good set is in force then."""
    wrong = policy("wrong", overrides={"capacity": [{"class": "absent", "mode": "Allow"}]})
    found = gathered(tmp_path, policies=(*POLICIES, wrong))
    assert found.policies is None
    lines = list(report.wrong(found))
    mentions(click.unstyle(lines[0]), "policies", "do not compile")
    wording(click.unstyle("\n".join(lines)))
    mentions(lines[1], "placementpolicies/wrong", "absent")


def policy_model(**spec: object) -> PlacementPolicy:
    """A policy of this spec."""
    return PlacementPolicy.model_validate(
        {
            "apiVersion": "fairlead.dev/v1alpha1",
            "kind": "PlacementPolicy",
            "metadata": {"name": "p"},
            "spec": {"defaults": {"nodeSelector": {"a": "b"}}, **spec},
        }
    )


def test_a_match_is_reported_condition_by_condition(wording: Wording) -> None:
    """By the names that documents have, with what is excluded."""
    found = policy_model(
        match={
            "namespaces": ["ml-*"],
            "podSelector": {"matchLabels": {"team": "x"}},
            "roles": ["worker", "ps"],
            "coordinator": False,
        },
        exclude=[{"kinds": ["notebook"]}],
    )
    *conditions, leads, excluded = for_whom(found).split("; ")
    assert conditions == ["namespaces ml-*", "podSelector team=x", "roles worker, ps"]
    mentions(leads, "not", "lead")
    mentions(excluded, "not", "kinds notebook")
    wording(for_whom(found))
    wording(for_whom(policy_model()))


def test_enforced_namespaces_are_reported() -> None:
    """Everywhere, in the namespaces of its rollout, or nowhere yet."""
    assert where(policy_model()) == "everywhere"
    assert where(policy_model(enforcement="Audit")) == "audit"
    assert where(policy_model(rollout={"namespaces": ["a", "b-*"]})) == "in a, b-*"
