"""Thousands of random pods, through the real webhook and through the exported policies."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.agreement import exported as export
from tests.agreement.differential import (
    DEFAULT_CLASS,
    NODE,
    NODE_USER,
    WITHOUT,
    apart,
    comparable,
)
from tests.agreement.dry_runs import Answer, dry_runs, examined
from tests.cluster.spaces import ADMINISTRATOR, Running
from tests.control_planes import StartControlPlane
from tests.exported.sets import SETS
from tests.fast_yaml import load_all_yaml
from tests.fuzz.additions import ODD, SOUND, at
from tests.fuzz.drawn import drawn
from tests.fuzz.pods import added, whole_pods
from tests.fuzz.policies import policy_documents
from tests.fuzz.world import POLICIES, PROVIDER
from tests.laws.strategies import CLASSES, document
from tests.marked_pods import PODS as MARKED
from tests.marked_pods import training
from tests.objects import required_affinity
from tests.policy_tests.writing import policy
from webhook import names
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.engine import decide
from webhook.errors import FairleadError
from webhook.identity import identify
from webhook.judgement.set_judgement import load_served
from webhook.placement import node_affinity
from webhook.placement import pod as pod_of
from webhook.policy.load import load
from webhook.policy.policy_documents import parse
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_webhook
from webhook.server.folder import read_folder

Json = export.Json
PODS = int(os.environ.get("FAIRLEAD_EXPORT_PODS", "2400"))
# Another one tries other pods and other policies.
SEED = int(os.environ.get("FAIRLEAD_EXPORT_SEED", "6"))
RANDOM_SETS = 8
# A namespace of either kind for each side, with the same labels.
WEBHOOK = {
    "ml-team": {"tier": "batch"},
    "whole-team": {names.PLACE: "all", names.KIND: "core"},
    "kept-team": {names.PLACE: "all", names.DAEMON_SETS: names.DAEMON_SETS_KEEP},
}
EXPORTED = {name.replace("team", "else"): labels for name, labels in WEBHOOK.items()}
PROBE: Json = {
    "metadata": {"name": "probe", "labels": {names.RUN: "probe"}},
    "spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]},
}
# A pod for each binding: by its own label, and by its namespace's.
PROBES = {"ml-else": PROBE, "whole-else": {**PROBE, "metadata": {"name": "probe"}}}
_NODE_FIELDS = ("nodeSelector", "affinity", "tolerations")


class Case(NamedTuple):
    """A pod, the set in force, and the answers without us, by the webhook, by the export.

    `ours`: whether it belongs to a run, by its own mark or its namespace's.
    """

    sent: Json
    text: str
    without: Answer
    by_webhook: Answer
    by_export: Answer
    ours: bool

    def examine(self) -> str:
        """Hold the two ways against each other; tell what became of the pod."""
        assert self.by_export.status < 500 or self.without.status >= 500, self.by_export.message
        if not self.without.accepted:
            assert not self.by_export.accepted
            return "refused either way"
        if self.ours and self.asks() and not self.left_alone():
            assert not self.by_export.accepted
            return "asks for capacity: refused by the export alone"
        assert self.by_export.accepted == self.by_webhook.accepted
        if not self.by_export.accepted:
            assert self.by_export.status == self.by_webhook.status == 403, self.by_export.message
            return "rejected"
        one, other = (unstamped(a.body) for a in (self.by_webhook, self.by_export))
        own = pod_of.parse_pod(self.without.body)
        if not node_affinity.satisfiable(own.required, own.node_selector):
            assert without_nodes(one) == without_nodes(other)
            return "no node before us"
        if one != other and self.drops_a_term():
            assert without_nodes(one) == without_nodes(other)
            return "a term dropped"
        assert one == other
        return "unchanged" if one == unstamped(self.without.body) else "placed"

    def drops_a_term(self) -> bool:
        """Whether the webhook's placement leaves no node to one of the pod's required terms.

        To the webhook such a term is the pod's word no longer, to exported policies it may be.
        """
        selector = pod_of.parse_pod(self.by_webhook.body).node_selector
        terms = pod_of.parse_pod(self.without.body).required or ()
        return any(not node_affinity.satisfiable([term], selector) for term in terms)

    def asks(self) -> bool:
        """Whether the pod's author asks for capacity."""
        annotations = self.without.body["metadata"].get("annotations", {})
        return bool(annotations.get(names.CAPACITY, "").strip())

    def left_alone(self) -> bool:
        """Whether the pod is its node's, or a DaemonSet's: by the webhook's stamp."""
        annotations = self.by_webhook.body["metadata"].get("annotations", {})
        return '"leftAlone":' in annotations.get(names.PLACEMENT, "")

    def __str__(self) -> str:
        answers = (self.without, self.by_webhook, self.by_export)
        return "\n".join(
            (
                f"pod: {json.dumps(self.sent)}",
                f"policies: {self.text}",
                *(f"{answer.status} {json.dumps(answer.body)}" for answer in answers),
            )
        )


def without_nodes(pod: Json) -> Json:
    """The pod without what it says of nodes' labels."""
    spec = {field: value for field, value in pod["spec"].items() if field not in _NODE_FIELDS}
    return {**pod, "spec": spec}


def unstamped(pod: Json) -> Json:
    """The pod as two can be compared, and without the stamp, which says another thing."""
    pod = json.loads(json.dumps(comparable(pod)))
    # Conditions have times.
    del pod["status"]
    annotations = pod["metadata"].get("annotations", {})
    annotations.pop(names.PLACEMENT, None)
    if not annotations:
        pod["metadata"].pop("annotations", None)
    return pod


@pytest.fixture
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """An API server of this test's own."""
    return apart(start_control_plane, {WITHOUT: {}, **WEBHOOK, **EXPORTED})


def user(pod: Json) -> str:
    """Who creates the pod: its node, the DaemonSet controller, or somebody else."""
    owners = pod["metadata"].get("ownerReferences") or [{}]
    if owners[0].get("kind") == "DaemonSet":
        return names.DAEMON_SET_CONTROLLER
    annotations = pod["metadata"].get("annotations") or {}
    mirror = names.MIRROR_POD in annotations and pod["spec"].get("nodeName") == NODE
    return NODE_USER if mirror else ADMINISTRATOR


def shipped() -> Iterator[str]:
    """Of each folder of policies/ what can be exported, beside the classes of one provider."""
    classes = [*load_all_yaml((POLICIES / PROVIDER.strip("/")).read_text())]
    for folder in sorted(POLICIES.iterdir()):
        if folder.is_dir() and folder.name != "capacity":
            files = [content.decode() for content in read_folder(folder).values()]
            yield exportable(load_all_yaml("\n---\n".join(files)), classes)


def random_sets() -> Iterator[str]:
    """Of random policies, in force everywhere, as many in a set as can be exported together."""
    for documents in drawn(policy_documents(most=6), RANDOM_SETS, SEED):
        for candidate in documents:
            candidate["spec"].pop("rollout", None)
        yield exportable(documents, CLASSES)


def exportable(documents: Iterable[Json], classes: Sequence[Json]) -> str:
    """As many of the documents as can be exported together, and take the probes."""
    kept = [*classes]
    for candidate in documents:
        with contextlib.suppress(FairleadError):
            export.exported(_text([*kept, candidate]), EXPORTED, DEFAULT_CLASS)
            if takes_the_probes([*kept, candidate]):
                kept.append(candidate)
    return _text(kept)


def takes_the_probes(documents: Sequence[Json]) -> bool:
    """Whether the set has no faults, and rejects none of the pods by which it is known to be in
    force."""
    served = load_served(parse({"p.yaml": _text(documents).encode()}))
    return not served.faults and all(
        decide(Arrival(pod, name, {}, "somebody"), served.policies, Cluster()).allowed
        for name, pod in PROBES.items()
    )


def _text(documents: Sequence[Json]) -> str:
    return "\n---\n".join(map(json.dumps, documents))


def cases(plane: ControlPlane, running: Running, pods: Sequence[Json]) -> Iterator[Case]:
    """All pods, a part of them under each of the sets."""
    texts = [*shipped(), *SETS, *random_sets()]
    size = len(pods) // len(texts)
    sides = list(zip(WEBHOOK, EXPORTED, strict=True))
    for number, text in enumerate(texts):
        export.apply(plane, export.exported(text, EXPORTED, DEFAULT_CLASS), PROBES)
        running.serve(text)
        part = pods[number * size : (number + 1) * size]
        answers = dry_runs(
            plane, part, lambda nth: (WITHOUT, *sides[2 if nth % 8 == 7 else nth % 4 == 3]), user
        )
        for nth, (sent, answered) in enumerate(zip(part, answers, strict=True)):
            marked = names.RUN in (sent["metadata"].get("labels") or {})
            without, by_webhook, by_export = answered
            yield Case(sent, text, without, by_webhook, by_export, marked or nth % 4 == 3)


def test_exported_policies_do_with_pods_what_the_webhook_does(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for what docs/guides/without-a-webhook.md says is different."""
    folder = tmp_path / "policies"
    folder.mkdir()
    pods = drawn(whole_pods(*SOUND, *SOUND, *ODD, most=4, run=False), PODS, SEED)
    for number, pod in enumerate(pods):
        # The API server's own to fill in.
        del pod["spec"]["priority"]
        # The webhook removes it, and exported policies, which have no fallbacks, leave it.
        (pod["metadata"].get("annotations") or {}).pop(names.HISTORY, None)
        if number % 4 or user(pod) == names.DAEMON_SET_CONTROLLER:
            # The one thing that every set refuses; some of these pods are enough. To a DaemonSet's
            # nobody gives what it asks for.
            (pod["metadata"].get("annotations") or {}).pop(names.CAPACITY, None)
        if number % 50 == 0:
            # Half of them by their node, which is believed, half forged, which are placed.
            added(pod, (at("metadata", "annotations", names.MIRROR_POD), "m"))
            pod["spec"]["nodeName"] = "n2" if number % 100 else NODE
    options = ("--poll-interval", "0.1")
    webhook = start_webhook(plane, folder, namespaces=tuple(WEBHOOK), options=options)
    with capsys.disabled():
        became = examined(cases(plane, Running(webhook, folder), pods))
    for result in ("placed", "unchanged", "rejected", "no node before us"):
        assert became[result], result


READ = policy(
    "leads", 'match: {coordinator: true}, overrides: {annotations: {leads: "yes"}}'
) + policy("serves", 'match: {kinds: [service]}, overrides: {annotations: {serves: "yes"}}')


def test_the_pods_of_every_system_are_read_as_the_webhook_reads_them(plane: ControlPlane) -> None:
    """Which of them lead, and which serve: in CEL as by the table of marks."""
    export.apply(plane, export.exported(READ, EXPORTED, DEFAULT_CLASS), PROBES)
    zeros = [training(operator, "worker", 0) for operator in ("paddlejob", "xgboostjob")]
    marked = [
        *((each["labels"], each.get("annotations", {})) for each in MARKED),
        *((each, {}) for each in zeros),
    ]
    pods: list[Json] = [
        {**PROBE, "metadata": {"name": "p", "labels": labels, "annotations": own}}
        for labels, own in marked
    ]
    answers = dry_runs(plane, pods, lambda _: ("whole-else",))
    for (labels, own), (answer,) in zip(marked, answers, strict=True):
        assert answer.accepted, answer.message
        found = identify(labels, own, EXPORTED["whole-else"])
        assert found
        seen = answer.body["metadata"]["annotations"]
        told = ("leads" in seen, "serves" in seen)
        assert told == (found.coordinator, found.kind == "service"), labels


def test_what_an_author_can_have_the_api_server_work_out_is_bounded(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Required terms are multiplied with those of policies; over 64 the pod is rejected."""
    classes = (POLICIES / "capacity" / "any-provider.yaml").read_text()
    setting = {"capacity": [{"class": "spot", "mode": "Constrain"}]}
    policy = document("PlacementPolicy", "p", {"overrides": setting})
    wanted = export.exported(_text([policy]) + f"\n---\n{classes}", [namespace], "")
    export.apply(control_plane, wanted, {namespace: PROBE})
    try:
        for count, status in ((10, 201), (11, 403)):
            pod = copy.deepcopy(PROBE)
            terms = [
                {"matchExpressions": [{"key": "rack", "operator": "In", "values": [f"r{n}"]}]}
                for n in range(count)
            ]
            pod["spec"]["affinity"] = required_affinity(*terms)
            ((answer,),) = dry_runs(control_plane, [pod], lambda _: [namespace])
            assert answer.status == status, answer.body
        assert "over 64 terms" in answer.message
    finally:
        export.withdraw(control_plane, wanted)


def test_what_plugins_add_is_allowed_in_narrower_words_too(
    control_plane: ControlPlane, namespace: str
) -> None:
    """By a list of allowed tolerations, for pods that request what they are added for."""
    policy = document(
        "PlacementPolicy", "p", {"requirements": {"allowedTolerations": {"patterns": []}}}
    )
    policies = load({"p.yaml": _text([policy]).encode()}).policies
    gpu, pressure = "nvidia.com/gpu", "node.kubernetes.io/memory-pressure"
    tolerations = [
        {"key": key, "effect": effect, **operator, **seconds}
        for key in (gpu, pressure, "node.kubernetes.io/not-ready", "other")
        for effect in ("NoSchedule", "NoExecute")
        for operator in ({"operator": "Exists"}, {"operator": "Equal", "value": "x"}, {})
        for seconds in (({}, {"tolerationSeconds": 300}) if effect == "NoExecute" else ({},))
    ]
    requests: list[Json] = [
        {},
        {"limits": {gpu: "1"}},
        {"limits": {gpu: "0"}, "requests": {"cpu": "1"}},
    ]
    pods = [
        {
            **PROBE,
            "spec": {
                "containers": [{**PROBE["spec"]["containers"][0], "resources": resources}],
                "tolerations": [toleration],
            },
        }
        for toleration in tolerations
        for resources in requests
    ]
    wanted = export.exported(_text([policy]), [namespace], "")
    export.apply(control_plane, wanted, {namespace: PROBE})
    try:
        answers = dry_runs(control_plane, pods, lambda _: [namespace])
    finally:
        export.withdraw(control_plane, wanted)
    found = {True: 0, False: 0}
    for pod, (answer,) in zip(pods, answers, strict=True):
        allowed = decide(Arrival(pod, namespace, {}, "somebody"), policies, Cluster()).allowed
        assert answer.accepted is allowed, (pod["spec"], answer.body)
        found[allowed] += 1
    assert all(found.values()), found


def test_no_number_takes_a_pod_out_of_reach(control_plane: ControlPlane, namespace: str) -> None:
    """An int64 may have nineteen digits and more, and whoever requires one leaves nodes."""
    policy = document("PlacementPolicy", "p", {"requirements": {"nodeSelector": {"pool": "b"}}})
    wanted = export.exported(_text([policy]), [namespace], "")
    export.apply(control_plane, wanted, {namespace: {**PROBE, "spec": _spec("b")}})
    least, most = "0" * 40 + "5", str(2**63 - 1)
    words = [("Lt", most), ("Gt", str(2**63 - 2)), ("Gt", least), ("Lt", least), ("Gt", "7")]
    pods = [{**PROBE, "spec": _spec("a", operator, number)} for operator, number in words]
    # Nobody's nodes: such a pod is left as lost as it was, unless it names another pool.
    nowhere = (("Gt", most), ("Lt", "0"))
    pods += [{**PROBE, "spec": _spec("a", *word)} for word in nowhere]
    nobodys = [{**PROBE, "spec": _spec("b", *word)} for word in nowhere]
    try:
        answers = dry_runs(control_plane, [*pods, *nobodys], lambda _: [namespace])
        found = [(answer.status, answer.body.get("message", "")) for (answer,) in answers]
    finally:
        export.withdraw(control_plane, wanted)
    assert [status for status, _ in found] == [403] * len(pods) + [201] * len(nobodys), found
    assert all("policy p" in message for status, message in found if status == 403), found


def _spec(pool: str, operator: str = "Exists", *numbers: str) -> Json:
    """A pod's spec that names a pool, and requires something of another label."""
    wanted = {"key": "cpus", "operator": operator, **({"values": numbers} if numbers else {})}
    affinity = required_affinity({"matchExpressions": [wanted]})
    return {**PROBE["spec"], "nodeSelector": {"pool": pool}, "affinity": affinity}
