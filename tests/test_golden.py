"""Golden cases: what policies make of pods, one file a case; those in `merging` are lists of them.

A file gives `rule`, the sentence that it shows; `classes`, `policies` and `exceptions` by name,
each with its spec; perhaps `cluster`, with the labels of its nodes by name, and `now`, when pods
come that do not say it themselves; and `pods`, each as it comes and with what becomes of it:

    out        the fields that differ afterwards, whole; {} means that nothing does, and null that
               the field is gone
    rejected   or the message for which it is refused
    warnings   what the person at kubectl is told, exactly; left out, nothing
    left       the reason why it keeps its placement
    stamp      the policies credited in the annotation fairlead.dev/placement, with their fields
    setAside   the policies that take no part, by exception; left out, none
    unmatched  policies that are not for it, each with the very condition that fails
    audited    what policies under Audit would have done
    trace      policy, field, outcome and reason of each entry of the trace
"""

from __future__ import annotations

import copy
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.fast_yaml import load_yaml
from webhook import names
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.audit import report
from webhook.decision.decision import Decision
from webhook.decision.engine import decide, subject_of
from webhook.placement import pod as pods_of
from webhook.placement.nodes import Node, by_name
from webhook.policy.load import Loaded, load
from webhook.policy.policy_set import PolicySet

Json = dict[str, Any]
FOLDER = Path(__file__).parent / "golden"
PARTS = {"rule", "classes", "policies", "cluster", "pods", "findings", "exceptions", "now"}
CASES: list[Json] = [
    *(load_yaml(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))),
    *(
        case
        for path in sorted(FOLDER.glob("merging/*.yaml"))
        for case in load_yaml(path.read_text())
    ),
]
METADATA = ("labels", "annotations")


def loaded(case: Json, *, backwards: bool = False) -> Loaded:
    """The policy set of a case, read as files are; in either order."""
    documents = [
        {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, part in (
            ("CapacityClass", "classes"),
            ("PlacementPolicy", "policies"),
            ("PlacementException", "exceptions"),
        )
        for name, spec in case.get(part, {}).items()
    ]
    if backwards:
        documents.reverse()
    return load({"case.yaml": yaml.safe_dump_all(documents, sort_keys=False).encode()})


def arrival(given: Json, now: str | None = None) -> Arrival:
    """The pod of a case as it comes."""
    metadata: Json = {"name": "p", **{key: given[key] for key in METADATA if key in given}}
    if "ownerReferences" in given:
        metadata["ownerReferences"] = given["ownerReferences"]
    spec = {"containers": [{"name": "main", "image": "i"}], **given.get("spec", {})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    namespace = given.get("namespace", "ml-team")
    moment = given.get("now", now)
    return Arrival(
        pod,
        namespace,
        given.get("namespaceLabels", {}),
        given.get("user", ""),
        datetime.fromisoformat(moment) if moment else None,
    )


def patched(pod: Json, decision: Decision) -> Json:
    result: Json = jsonpatch.apply_patch(copy.deepcopy(pod), list(decision.patch))
    return result


def expected(pod: Json, out: Json) -> Json:
    """The pod as it came, with the fields in `out` instead of its own."""
    result = copy.deepcopy(pod)
    for field, value in out.items():
        holder = result["metadata" if field in METADATA else "spec"]
        holder.pop(field, None)
        if value is not None:
            holder[field] = value
    return result


def without_stamp(pod: Json) -> tuple[Json, Json]:
    """The pod without Fairlead's own annotation, and what that says."""
    result = copy.deepcopy(pod)
    annotations = result["metadata"].get("annotations", {})
    stamp = json.loads(annotations.pop(names.PLACEMENT, "{}"))
    if not annotations:
        result["metadata"].pop("annotations", None)
    return result, stamp


def check(given: Json, decision: Decision, policies: PolicySet) -> None:
    """What became of one pod is what its case says."""
    came = arrival(given)
    if "rejected" in given:
        assert (decision.result, decision.reason) == ("rejected", given["rejected"])
        assert not decision.patch
    else:
        final, stamp = without_stamp(patched(came.pod, decision))
        assert decision.allowed, decision.reason
        assert final == expected(came.pod, given["out"])
        assert stamp.get("leftAlone", "") == given.get("left", "") == decision.reason
        if "stamp" in given:
            assert stamp.get("policies") == given["stamp"]
        assert stamp.get("exceptions", {}) == given.get("setAside", {})
    assert list(decision.warnings) == given.get("warnings", [])
    if "trace" in given:
        lines = [f"{e.policy} {e.field} {e.outcome}: {e.reason}" for e in decision.trace]
        assert lines == given["trace"]
    if "audited" in given:
        assert decision.audited is not None
        seen = json.loads(json.dumps(report(decision.audited)))
        seen.pop("patch", None)
        assert seen == given["audited"]
    for name, condition in given.get("unmatched", {}).items():
        (policy,) = (policy for policy in policies.policies if policy.name == name)
        assert decision.identity is not None
        own = pods_of.parse_pod(came.pod)
        subject = subject_of(came, own, decision.identity, policies)
        assert policy.failed(subject) == condition


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_a_golden_case_comes_out_as_written(case: Json) -> None:
    """Each pod; and again, over its own outcome, and with the documents in the other order."""
    policies, warnings = loaded(case)
    turned = loaded(case, backwards=True).policies
    findings = [str(finding).split(": ", 1)[1] for finding in warnings]
    assert findings == case.get("findings", [])
    given_cluster = case.get("cluster", {})
    known = given_cluster.get("nodes")
    cluster = Cluster(
        default_priority_class=given_cluster.get("priorityClass", ""),
        node=by_name(known and [Node(name, labels, ()) for name, labels in known.items()]),
    )
    for given in case["pods"]:
        came = arrival(given, case.get("now"))
        decision = decide(came, policies, cluster)
        check(given, decision, policies)
        assert decide(came, turned, cluster) == decision
        if decision.allowed:
            final = patched(came.pod, decision)
            once_more = came._replace(pod=final)
            assert not decide(once_more, policies, cluster).patch


def test_every_golden_case_has_a_rule_of_its_own() -> None:
    """Two files that show the same are one too many."""
    rules = [case["rule"] for case in CASES]
    assert len(set(rules)) == len(rules)
    assert all(rule.endswith(".") for rule in rules)
    assert all(set(case) <= PARTS for case in CASES)
