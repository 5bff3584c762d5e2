"""Each value of the chart arrives at its places, and changes nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.fast_yaml import load_yaml
from tests.go_programs import HELMS, obtain_program
from tests.helm.conftest import Template, templating
from tests.helm.test_equal import COMPONENTS, FILES, by_name, whole, without_policy
from tests.manifests.chart import CHART
from tests.manifests.generated import MANIFESTS, ROOT
from tests.manifests.kustomize import Json, kustomized, one
from tests.manifests.value_rows import described
from webhook import names
from webhook.interception import GUARD, expected_entries, read_record
from webhook.judgement.entry_states import pod_entries
from webhook.judgement.guard_states import guard_states
from webhook.sources import SHIPPED

SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: Json = load_yaml((CHART / "values.yaml").read_text())
# Every object that the chart can have, so that a value shows wherever it goes.
ALL: Final[Json] = {
    "pages": True,
    "doctor": True,
    "monitoring": True,
    "sources": ["mlrun"],
    "guards": {"stamp": "deny", "nodeNames": True, "tolerations": True},
    "namespace": {"create": True},
}
POD: Final = "spec/template/spec"
CONTAINER: Final = f"{POD}/containers/0"
# The Deployments and the CronJob, with the paths of their pods' templates.
PODS: Final = [
    *(("Deployment", f"fairlead-{name}", "spec/template") for name in ("webhook", "controller")),
    ("Deployment", "fairlead-ui", "spec/template"),
    ("CronJob", "fairlead-doctor", "spec/jobTemplate/spec/template"),
]
POLICIES: Final = ("webhook", "controller", "ui", "doctor")
READER: Final = {
    "podSelector": {
        "matchLabels": {
            "app.kubernetes.io/name": "fairlead",
            "app.kubernetes.io/component": "controller",
        }
    }
}
PEER: Final = {"ipBlock": {"cidr": "192.0.2.0/24"}}
PORTS: Final = [{"port": 7, "protocol": "TCP"}]
PAIR: Final = {"example.com/a": "b"}
SELECTOR: Final = {
    "matchLabels": {"team": "ml"},
    "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["dev"]}],
}
GONE: Final = object()


class Change(NamedTuple):
    """A place in an object, and what it becomes from what it was; None: it was not there."""

    kind: str
    name: str
    path: str
    becomes: Callable[[Any], Any]


class Case(NamedTuple):
    """A value that is no default, and all that it changes."""

    value: Any
    changes: Sequence[Change]


def to(value: object) -> Callable[[Any], Any]:
    return lambda _: value


def plus(*items: object) -> Callable[[Any], Any]:
    return lambda old: [*(old or ()), *items]


def also(pairs: Mapping[str, object]) -> Callable[[Any], Any]:
    return lambda old: {**(old or {}), **pairs}


def of_pods(path: str, becomes: Callable[[Any], Any]) -> list[Change]:
    return [Change(kind, name, f"{template}/{path}", becomes) for kind, name, template in PODS]


def of_policies(path: str, becomes: Callable[[Any], Any]) -> list[Change]:
    return [Change("NetworkPolicy", f"fairlead-{name}", path, becomes) for name in POLICIES]


def both(path: str, becomes: Callable[[Any], Any]) -> list[Change]:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    return [Change(kind, "fairlead", path, becomes) for kind in kinds]


# No selector of pods selects pods of the node's network.
REACHED_DIRECTLY: Final = [
    Change(
        "NetworkPolicy",
        names.CONTROLLER,
        "spec/egress",
        lambda old: [
            *old[:2],
            {"ports": [{"port": port, "protocol": "TCP"} for port in (8443, 8081)]},
        ],
    )
]


def of_program(program: str, health: int) -> dict[str, Case]:
    """The cases of a program's own values."""
    name = f"fairlead-{program}"

    def deployment(path: str, becomes: Callable[[Any], Any]) -> list[Change]:
        return [Change("Deployment", name, path, becomes)]

    spread = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    variable = {"name": "HTTPS_PROXY", "value": "http://192.0.2.1:3128"}
    volume = {"name": "extra", "configMap": {"name": "extra"}}
    mount = {"name": "extra", "mountPath": "/extra", "readOnly": True}
    strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    zones: Json = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    resources = {"limits": {"memory": "1Gi"}}
    toleration = {"key": "system", "operator": "Exists"}
    port = health + 1000
    cases = {
        "replicas": Case(5, deployment("spec/replicas", to(5))),
        "strategy": Case(strategy, deployment("spec/strategy", to(strategy))),
        "annotations": Case(PAIR, deployment("metadata/annotations", also(PAIR))),
        "resources": Case(
            resources,
            deployment(f"{CONTAINER}/resources/limits", also({"memory": "1Gi"})),
        ),
        "extraEnv": Case([variable], deployment(f"{CONTAINER}/env", plus(variable))),
        "extraVolumes": Case([volume], deployment(f"{POD}/volumes", plus(volume))),
        "extraVolumeMounts": Case([mount], deployment(f"{CONTAINER}/volumeMounts", plus(mount))),
        "priorityClassName": Case("mine", deployment(f"{POD}/priorityClassName", to("mine"))),
        "nodeSelector": Case(PAIR, deployment(f"{POD}/nodeSelector", to(PAIR))),
        "tolerations": Case([toleration], deployment(f"{POD}/tolerations", to([toleration]))),
        "keepOffSpotNodes": Case(False, deployment(f"{POD}/affinity", to(GONE))),
        "affinity": Case(zones, deployment(f"{POD}/affinity", also(zones))),
        "spread": Case(False, deployment(f"{POD}/topologySpreadConstraints", to(GONE))),
        "topologySpreadConstraints": Case(
            [spread], deployment(f"{POD}/topologySpreadConstraints", to([spread]))
        ),
        "dnsConfig": Case(
            {"searches": ["example.com"]},
            deployment(f"{POD}/dnsConfig", to({"searches": ["example.com"]})),
        ),
        "dnsPolicy": Case("Default", deployment(f"{POD}/dnsPolicy", to("Default"))),
        "hostNetwork": Case(
            True,
            [
                *deployment(f"{POD}/hostNetwork", to(True)),
                *deployment(f"{POD}/dnsPolicy", to("ClusterFirstWithHostNet")),
                Change(
                    "Namespace",
                    names.NAMESPACE,
                    "metadata/labels",
                    also({"pod-security.kubernetes.io/enforce": "privileged"}),
                ),
                *(REACHED_DIRECTLY if program == "webhook" else ()),
            ],
        ),
        "healthPort": Case(
            port,
            [
                *deployment(
                    f"{CONTAINER}/ports",
                    lambda old: [
                        {**each, "containerPort": port} if each["name"] == "health" else each
                        for each in old
                    ],
                ),
                *deployment(f"{CONTAINER}/args", plus(f"--health-port={port}")),
            ],
        ),
        "extraArgs": Case(
            ["--log-level=debug"], deployment(f"{CONTAINER}/args", plus("--log-level=debug"))
        ),
        "serviceAccountAnnotations": Case(
            PAIR, [Change("ServiceAccount", name, "metadata/annotations", also(PAIR))]
        ),
    }
    return {f"{program}.{key}": case for key, case in cases.items()}


CASES: Final[dict[str, Case]] = {
    "image.pullPolicy": Case("Always", of_pods("spec/containers/0/imagePullPolicy", to("Always"))),
    "image.pullSecrets": Case(
        [{"name": "pull"}], of_pods("spec/imagePullSecrets", to([{"name": "pull"}]))
    ),
    "webhookConfigurations.timeoutSeconds": Case(
        7,
        [
            Change(
                "MutatingWebhookConfiguration",
                "fairlead",
                "webhooks",
                lambda old: [{**each, "timeoutSeconds": 7} for each in old],
            )
        ],
    ),
    "webhookConfigurations.labels": Case(
        {"admissions.enforcer/disabled": "true"},
        both("metadata/labels", also({"admissions.enforcer/disabled": "true"})),
    ),
    "webhookConfigurations.annotations": Case(PAIR, both("metadata/annotations", also(PAIR))),
    "monitoringLabels": Case(
        {"release": "prometheus"},
        [
            Change(kind, "fairlead", "metadata/labels", also({"release": "prometheus"}))
            for kind in ("ServiceMonitor", "PrometheusRule")
        ],
    ),
    "networkPolicy.dnsPorts": Case(PORTS, of_policies("spec/egress/0/ports", to(PORTS))),
    "networkPolicy.apiServerPorts": Case(PORTS, of_policies("spec/egress/1/ports", to(PORTS))),
    "networkPolicy.apiServers": Case([PEER], of_policies("spec/egress/1/to", to([PEER]))),
    "networkPolicy.callers": Case(
        [PEER],
        [Change("NetworkPolicy", names.WEBHOOK, "spec/ingress/0/from", to([READER, PEER]))],
    ),
    "networkPolicy.scrapers": Case(
        [PEER],
        [
            Change("NetworkPolicy", names.WEBHOOK, "spec/ingress/1/from", to([READER, PEER])),
            Change("NetworkPolicy", names.CONTROLLER, "spec/ingress/0/from", to([READER, PEER])),
        ],
    ),
    "service.ipFamilyPolicy": Case(
        "PreferDualStack",
        [
            Change("Service", name, "spec/ipFamilyPolicy", to("PreferDualStack"))
            for name in ("fairlead-webhook", "fairlead-metrics")
        ],
    ),
    "service.ipFamilies": Case(
        ["IPv6"],
        [
            Change("Service", name, "spec/ipFamilies", to(["IPv6"]))
            for name in ("fairlead-webhook", "fairlead-metrics")
        ],
    ),
    "podLabels": Case(PAIR, of_pods("metadata/labels", also(PAIR))),
    "podAnnotations": Case(PAIR, of_pods("metadata/annotations", also(PAIR))),
    "podSecurityContext": Case(
        {"runAsUser": None, "fsGroup": 1000850000},
        of_pods(
            "spec/securityContext",
            lambda old: {
                **{key: each for key, each in old.items() if key != "runAsUser"},
                "fsGroup": 1000850000,
            },
        ),
    ),
    "containerSecurityContext": Case(
        {"procMount": "Default"},
        of_pods("spec/containers/0/securityContext", also({"procMount": "Default"})),
    ),
    "runtimeClassName": Case("gvisor", of_pods("spec/runtimeClassName", to("gvisor"))),
    **of_program("webhook", 8081),
    **of_program("controller", 8082),
    "webhook.port": Case(
        9443,
        [
            Change(
                "Deployment",
                names.WEBHOOK,
                f"{CONTAINER}/ports",
                lambda old: [
                    {**each, "containerPort": 9443} if each["name"] == "https" else each
                    for each in old
                ],
            ),
            Change("Deployment", names.WEBHOOK, f"{CONTAINER}/args", plus("--port=9443")),
        ],
    ),
}
# Values with a test of their own here, or in test_equal.py.
ELSEWHERE: Final = {
    *("image.repository", "image.tag", "image.digest", "commonLabels", "networkPolicy.enabled"),
    *("webhookConfigurations.namespaceSelector", "guards.tolerationsExempt", "namespace.create"),
    *("crds.install", "certificates", "criticalPodsQuota"),
    *("webhook.podDisruptionBudget", "controller.podDisruptionBudget"),
    *(path for _, values in COMPONENTS for path in ("guards.stamp", *values)),
    *("guards.nodeNames", "guards.tolerations"),
} - {"guards"}


def nested(path: str, value: object) -> Json:
    """Values with one of them set, by its path with dots."""
    for key in reversed(path.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json:
    """Values with more values, as helm merges them."""
    found = {**one}
    for key, value in other.items():
        below = found.get(key)
        both_map = isinstance(below, dict) and isinstance(value, dict)
        found[key] = merged(below, value) if both_map and below is not None else value
    return found


def put(tree: Any, path: str, becomes: Callable[[Any], Any]) -> None:
    """Change the value at a path; a number is a position in a list."""
    *above, last = path.split("/")
    for key in above:
        tree = tree[int(key)] if isinstance(tree, list) else tree.setdefault(key, {})
    value = becomes(tree.get(last))
    if value is GONE:
        tree.pop(last)
    else:
        tree[last] = value


@pytest.fixture(scope="module")
def shipped(template: Template) -> tuple[Json, ...]:
    """Every object that the chart can have, with no other values."""
    return template(ALL)


@pytest.mark.parametrize("path", CASES)
def test_a_value_arrives_at_its_places_and_changes_nothing_else(
    template: Template, shipped: tuple[Json, ...], path: str
) -> None:
    """Each once, to something that is no default."""
    case = CASES[path]
    wanted = deepcopy(shipped)
    for change in case.changes:
        put(one(wanted, change.kind, change.name), change.path, change.becomes)
    found = template(merged(ALL, nested(path, case.value)))
    assert [*_differing(found, wanted)] == []
    assert [*_differing(found, shipped)] != []


def _differing(found: Sequence[Json], wanted: Sequence[Json]) -> Iterator[tuple[str, object]]:
    for each, other in zip(found, wanted, strict=True):
        if each != other:
            yield f"{each['kind']} {each['metadata']['name']}", (each, other)


def test_every_value_has_a_case() -> None:
    """A new row of the table needs its case here, or a test of its own."""
    known = {path for path, _, _ in described(SCHEMA, DEFAULTS)}
    assert known == {*CASES, *ELSEWHERE}
    assert not CASES.keys() & ELSEWHERE


def test_common_labels_are_on_every_object_and_no_pod(template: Template) -> None:
    """Beside Fairlead's own, by which programs find them."""
    for each in template({**ALL, "commonLabels": PAIR, "policyFiles": FILES} | {"nodes": True}):
        labels = each["metadata"]["labels"]
        assert labels["example.com/a"] == "b"
        template_of = each.get("spec", {}).get("template", {})
        assert "example.com/a" not in template_of.get("metadata", {}).get("labels", {})


def test_network_policies_are_left_out_on_request(
    template: Template, shipped: tuple[Json, ...]
) -> None:
    """All of them, and nothing else."""
    found = template(merged(ALL, {"networkPolicy": {"enabled": False}}))
    assert [each for each in shipped if each["kind"] != "NetworkPolicy"] == [*found]


def test_a_chosen_narrowing_is_recorded_and_is_no_fault(template: Template) -> None:
    """In entries, guards and warnings on workloads; to the controller and doctor it is meant."""
    found = template(merged(ALL, {"webhookConfigurations": {"namespaceSelector": SELECTOR}}))
    record = read_record(one(found, "Deployment", names.CONTROLLER))
    configuration = one(found, "MutatingWebhookConfiguration")
    states = pod_entries(record, configuration, SHIPPED, {}, {})
    assert [(each.reason, each.narrowings) for each in states] == [("", ())] * len(states)
    live = [each["name"] for each in configuration["webhooks"]]
    assert [each.entry for each in states] == live
    bindings = [each for each in found if each["kind"] == "ValidatingAdmissionPolicyBinding"]
    policies = {
        each["metadata"]["name"]: each
        for each in found
        if each["kind"] == "ValidatingAdmissionPolicy"
    }
    authors = policies[names.RUN_AUTHORS_GUARD]
    expected = expected_entries(record)
    guards = guard_states(record.of_kind(GUARD), policies, bindings, expected, {}, authors)
    assert {each.entry: each.reason for each in guards} == dict.fromkeys(policies, "")
    _, workloads = one(found, "ValidatingWebhookConfiguration")["webhooks"]
    narrowed = [
        *(each["namespaceSelector"] for each in (*configuration["webhooks"], workloads)),
        *(
            each["spec"]["matchResources"]["namespaceSelector"]
            for each in bindings
            if each["spec"]["policyName"] not in (names.RUN_AUTHORS_GUARD, "fairlead-doctor")
        ),
    ]
    assert len(narrowed) == 3 * len(live) + 1 + 2
    for selector in narrowed:
        assert selector["matchLabels"] == SELECTOR["matchLabels"]
        assert selector["matchExpressions"][-1:] == SELECTOR["matchExpressions"]
    # Without the record it is a fault.
    annotations = one(found, "Deployment", names.CONTROLLER)["metadata"]["annotations"]
    del annotations[names.INTERCEPTED_NAMESPACE_SELECTOR]
    record = read_record(one(found, "Deployment", names.CONTROLLER))
    states = pod_entries(record, configuration, SHIPPED, {}, {})
    assert {each.reason for each in states} == {"Narrowed"}


def test_both_majors_of_helm_make_the_same_objects() -> None:
    """Of all values at once."""
    values = ALL
    for path, case in CASES.items():
        values = merged(values, nested(path, case.value))
    newest, older = (
        by_name(templating(obtain_program(program))(values)) for program in HELMS.values()
    )
    assert newest == older


PAGES: Final = sorted((ROOT / "docs").rglob("*.md"))
KUSTOMIZATION: Final = re.compile(
    r"^```yaml\n(# mine/kustomization.yaml\n.*?)^```$", re.MULTILINE | re.DOTALL
)
BLOCKS: Final = {
    f"{page.stem}-{number}": text
    for page in PAGES
    for number, text in enumerate(
        re.findall(
            r"^```yaml\n(# Helm values\n.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
        ),
        start=1,
    )
}


@pytest.mark.parametrize("name", BLOCKS)
def test_values_of_the_pages_are_valid(
    template: Template, shipped: tuple[Json, ...], name: str
) -> None:
    """Each block of values renders, and changes something."""
    assert template(merged(ALL, load_yaml(BLOCKS[name]))) != shipped


def test_the_profile_for_openshift_is_that_of_its_page(
    template: Template, kubectl_path: Path, tmp_path: Path
) -> None:
    """No pod names a user or a group, and all may ask the DNS at the port of its pods."""
    profile = load_yaml((CHART / "openshift.yaml").read_text())
    found = template(merged(ALL, profile))
    for kind, name, path in PODS:
        spec = one(found, kind, name)
        for key in f"{path}/spec".split("/"):
            spec = spec[key]
        contexts = [spec["securityContext"], spec["containers"][0]["securityContext"]]
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & {*contexts[0], *contexts[1]}
        assert contexts[0]["runAsNonRoot"]
    for name in POLICIES:
        rules = one(found, "NetworkPolicy", f"fairlead-{name}")["spec"]["egress"]
        assert [each["port"] for each in rules[0]["ports"]] == [53, 53, 5353, 5353]
    assert load_yaml(BLOCKS["openshift-1"]) == profile
    (kustomization,) = KUSTOMIZATION.findall((ROOT / "docs/guides/openshift.md").read_text())
    document = load_yaml(kustomization)
    document["resources"] = [os.path.relpath(MANIFESTS / "default", tmp_path)]
    (tmp_path / "kustomization.yaml").write_text(json.dumps(document))
    made = by_name(without_policy(template(whole(profile))))
    assert made == by_name(kustomized(kubectl_path, tmp_path))
