"""What is wrong with a pod template is said; whatever one holds, nothing else is raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.run.runs import a_run, containers, spec_of
from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import InvalidRun
from webhook.run.environment import SPEC
from webhook.run.plan import Plan, plan
from webhook.run.template import template_problems

Json = dict[str, Any]
AT = ("spec", "template")


def problems(template: Json, *, serving: bool = False) -> list[str]:
    """What is wrong with a run's template."""
    return list(template_problems(template, AT, serving=serving))


def in_main(**fields: Any) -> Json:
    """A template whose only container has these fields."""
    return spec_of([{"name": "main", "image": "i", **fields}])


@pytest.mark.parametrize(
    ("template", "path", "facts"),
    [
        (
            {"metadata": {"labels": ["a"]}},
            "metadata.labels",
            ("object", "list"),
        ),
        (
            {"metadata": {"annotations": {"a": True}}},
            "metadata.annotations.a",
            ("string", "bool 'True'"),
        ),
        (
            {"metadata": {"ownerReferences": []}},
            "metadata.ownerReferences",
            ("not reach the pods", "remove it"),
        ),
        (spec_of([], hostname="h"), "spec.hostname", ("'h'",)),
        (spec_of([], restartPolicy="Always"), "spec.restartPolicy", ("'Always'",)),
        (spec_of([], volumes={}), "spec.volumes", ("list", "dict '{}'")),
        (spec_of([], volumes=["v"]), "spec.volumes[0]", ("object", "str 'v'")),
        (spec_of([], dnsConfig=[]), "spec.dnsConfig", ("object", "list '[]'")),
        (spec_of([{"name": 1}]), "spec.containers[0].name", ("needs a name",)),
        (
            spec_of(containers("a", "b", "a")),
            "spec.containers[2].name",
            ("'a'", "containers[0]"),
        ),
        (in_main(env=["A=1"]), "spec.containers[0].env[0]", ("object", "str")),
        (in_main(resources=2), "spec.containers[0].resources", ("object", "int")),
        (in_main(ports=80), "spec.containers[0].ports", ("list", "int '80'")),
        (
            spec_of([], tolerations=[{"key": 1}]),
            "spec.tolerations[0].key",
            ("string", "int"),
        ),
        (
            in_main(**{"$setElementOrder/env": []}),
            "spec.containers[0][$setElementOrder/env]",
            ("'[]'", "strategic"),
        ),
        (in_main(**{"$patch": "merge"}), "spec.containers[0][$patch]", ("'merge'",)),
    ],
)
def test_a_problem_says_where_and_what(
    template: Json, path: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """The path of the field comes first, then the value seen, then the cure."""
    (line,) = problems(template)
    assert line.startswith(f"spec.template.{path}: ")
    mentions(line, *facts)
    wording(line)


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"metadata": {"creationTimestamp": None, "labels": None, "finalizers": ["a/b"]}},
        spec_of(containers("main"), restartPolicy="Never", volumes=None, nodeSelector=None),
        spec_of(containers("main"), nodeSelector={"gone": None}),
        in_main(**{"$patch": "delete"}),
        spec_of([{"$patch": "replace"}, *containers("main")]),
        spec_of([], novelField={"a": 1}),
    ],
)
def test_nulls_and_unknown_fields_are_left_to_the_api_server(template: Json) -> None:
    """Nulls, and fields that are not known here: the API server has the last word."""
    assert problems(template) == []


def test_a_deployments_pods_always_restart(wording: Wording) -> None:
    """So a notebook's template says Always or nothing, and may have a hostname."""
    assert problems(spec_of([], restartPolicy="Always", hostname="h"), serving=True) == []
    (line,) = problems(spec_of([], restartPolicy="Never"), serving=True)
    assert line.startswith("spec.template.spec.restartPolicy: ")
    mentions(line, "'Never'", "Deployment")
    wording(line)


values = st.recursive(
    st.sampled_from((None, True, 0, 8888, "", "a", "main", 0.5)),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(("name", "a", "$patch", "containerPort", "limits", "mountPath")),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


def odd(*fields: str) -> st.SearchStrategy[Json]:
    """An object with nothing, or one of the fields, of any shape."""
    return st.just({}) | st.builds(lambda key, value: {key: value}, st.sampled_from(fields), values)


an_odd_container = odd("env", "resources", "ports", "volumeMounts", "securityContext", "command")
some_containers = st.builds(
    lambda one, more: [{**one, "name": "main", "image": "i"}, *more],
    an_odd_container,
    st.sampled_from(([], containers("b"), [], containers("b", "c"), [], [{}], ["b"])),
)
templates = st.builds(
    lambda metadata, spec, found: {"metadata": metadata, "spec": {**spec, "containers": found}},
    st.just({}) | odd("labels", "annotations", "finalizers", "name"),
    odd(*SPEC, "volumes", "initContainers", "dnsConfig", "hostNetwork", "serviceAccountName"),
    some_containers,
)
RUNS: tuple[Json, ...] = (
    {
        "framework": "mpi",
        "replicas": {"launcher": {}, "worker": {}},
        "mpi": {"implementation": "MPICH"},
    },
    {"kind": "notebook", "ports": [{"port": 80}]},
    {"framework": "spark", "replicas": {"driver": {}}},
    {"mainContainer": "main", "environment": {"nodeSelector": {"a": "b"}, "securityContext": {}}},
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(templates, st.none() | templates, st.sampled_from(RUNS))
def test_whatever_a_template_holds_it_is_planned_or_refused(
    template: Json, over: Json | None, spec: Json
) -> None:
    """Fields of any shape make manifests that can be sent, or an InvalidRun; nothing else."""
    roles = spec.get("replicas", {"master": {}})
    replicas = {role: {"template": over} if over else {} for role in roles}
    run = a_run("r", {**spec, "template": template, "replicas": replicas})
    try:
        made = plan(run)
    except InvalidRun as refusal:
        event("refused")
        told = [line for line in refusal.problems if not line.startswith("spec.")]
    else:
        event("planned")
        told = []
        send(made)
    assert not told


def send(made: Plan) -> None:
    """What a client does with all the manifests."""
    for role in made.templates:
        json.dumps(made.pod(role, 0, 0))
    json.dumps([made.service(), made.config_map()])
    if made.run.spec.serving:
        json.dumps(made.deployment())


@pytest.mark.parametrize("key", names.OF_CONTROLLER)
@pytest.mark.parametrize("where", ["template", "environment", "replica"])
def test_what_the_controller_writes_is_nobody_elses(key: str, where: str) -> None:
    """By the nodes to avoid, pods that wait are created again: with the author's, for ever."""
    written = {"annotations": {key: "a"}}
    template: Json = spec_of(containers("main"))
    fields: Json = {"template": template}
    if where == "template":
        fields["template"] = {**template, "metadata": written}
    elif where == "environment":
        fields["environment"] = written
    else:
        fields["replicas"] = {"worker": {"environment": written}}
    with pytest.raises(InvalidRun) as error:
        plan(a_run("r", fields))
    mentions(str(error.value), where if where != "replica" else "worker", key, "remove it")
