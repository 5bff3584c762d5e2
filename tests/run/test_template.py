"""One pod template over another, as kubectl apply would merge them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webhook.run.template import merged

Json = dict[str, Any]


def spec(**fields: Any) -> Json:
    return {"spec": fields}


def main(**fields: Any) -> Json:
    """A template with one container, main, and these fields of it."""
    return spec(containers=[{"name": "main", **fields}])


CASES: dict[str, tuple[Json, Json, Json]] = {
    "containers go by name, keep their order, and new ones follow": (
        spec(containers=[{"name": "main", "image": "a"}, {"name": "log", "image": "l"}]),
        spec(containers=[{"name": "new", "image": "n"}, {"name": "main", "tty": True}]),
        spec(
            containers=[
                {"name": "main", "image": "a", "tty": True},
                {"name": "log", "image": "l"},
                {"name": "new", "image": "n"},
            ]
        ),
    ),
    "init containers go by name": (
        spec(initContainers=[{"name": "fetch", "image": "a"}]),
        spec(initContainers=[{"name": "fetch", "image": "b"}]),
        spec(initContainers=[{"name": "fetch", "image": "b"}]),
    ),
    "command and args are replaced": (
        main(command=["python"], args=["-m", "train"]),
        main(args=["-m", "serve"]),
        main(command=["python"], args=["-m", "serve"]),
    ),
    "variables go by name, and each is replaced whole": (
        main(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
        main(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]),
        main(
            env=[
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "B", "value": "2"},
            ]
        ),
    ),
    "ports go by number and protocol, which is TCP": (
        main(ports=[{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]),
        main(ports=[{"containerPort": 53, "protocol": "TCP", "name": "dns"}]),
        main(
            ports=[
                {"containerPort": 53, "protocol": "TCP", "name": "dns"},
                {"containerPort": 53, "protocol": "UDP"},
            ]
        ),
    ),
    "mounts go by path": (
        main(volumeMounts=[{"mountPath": "/data", "name": "a", "readOnly": True}]),
        main(volumeMounts=[{"mountPath": "/data", "name": "b"}, {"mountPath": "/x", "name": "c"}]),
        main(
            volumeMounts=[
                {"mountPath": "/data", "name": "b", "readOnly": True},
                {"mountPath": "/x", "name": "c"},
            ]
        ),
    ),
    "a volume keeps no other source beside its new one": (
        spec(volumes=[{"name": "data", "emptyDir": {}}, {"name": "x", "emptyDir": {}}]),
        spec(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]),
        spec(
            volumes=[
                {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "x", "emptyDir": {}},
            ]
        ),
    ),
    "a volume of the same source merges": (
        spec(volumes=[{"name": "data", "emptyDir": {"medium": "Memory"}}]),
        spec(volumes=[{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}]),
        spec(volumes=[{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]),
    ),
    "spread constraints go by their pair": (
        spec(
            topologySpreadConstraints=[{"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]
        ),
        spec(
            topologySpreadConstraints=[
                {"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2},
                {"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1},
            ]
        ),
        spec(
            topologySpreadConstraints=[
                {"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2},
                {"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1},
            ]
        ),
    ),
    "tolerations are replaced, as every list without a key": (
        spec(tolerations=[{"key": "a", "operator": "Exists"}], readinessGates=[{"x": 1}]),
        spec(tolerations=[{"key": "b", "operator": "Exists"}]),
        spec(tolerations=[{"key": "b", "operator": "Exists"}], readinessGates=[{"x": 1}]),
    ),
    "maps merge at every depth": (
        {"metadata": {"labels": {"a": "1"}}, **main(resources={"limits": {"cpu": 1}})},
        {"metadata": {"labels": {"b": "2"}}, **main(resources={"limits": {"memory": "1Gi"}})},
        {
            "metadata": {"labels": {"a": "1", "b": "2"}},
            **main(resources={"limits": {"cpu": 1, "memory": "1Gi"}}),
        },
    ),
    "null removes": (
        {"metadata": {"labels": {"a": "1", "b": "2"}}, **main(image="a", tty=True)},
        {"metadata": {"labels": {"a": None}}, **main(tty=None)},
        {"metadata": {"labels": {"b": "2"}}, **main(image="a")},
    ),
    "null of what is not there is nothing": (
        main(image="a"),
        main(lifecycle={"preStop": None}, stdin=None),
        main(image="a", lifecycle={}),
    ),
    "an item is deleted by its directive": (
        spec(containers=[{"name": "main"}, {"name": "log"}], volumes=[{"name": "v"}]),
        spec(
            containers=[{"name": "log", "$patch": "delete"}, {"name": "no", "$patch": "delete"}],
            volumes=[{"name": "v", "$patch": "delete"}],
        ),
        spec(containers=[{"name": "main"}], volumes=[]),
    ),
    "a map is replaced by its directive": (
        {"metadata": {"labels": {"a": "1"}}, **main(image="a")},
        {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
        {"metadata": {"labels": {"b": "2"}}, **main(image="a")},
    ),
    "a list is replaced by an item with the directive": (
        spec(containers=[{"name": "main", "image": "a"}, {"name": "log", "image": "l"}]),
        spec(containers=[{"$patch": "replace"}, {"name": "main", "image": "b"}]),
        spec(containers=[{"name": "main", "image": "b"}]),
    ),
    "all of a spec is replaced by its directive": (
        {"metadata": {"labels": {"a": "1"}}, **main(image="a")},
        spec(containers=[{"name": "other"}], **{"$patch": "replace"}),
        {"metadata": {"labels": {"a": "1"}}, **spec(containers=[{"name": "other"}])},
    ),
    "fields that nobody knows merge as maps and lists do": (
        spec(novel={"a": {"b": 1}, "list": [1]}),
        spec(novel={"a": {"c": 2}, "list": [2]}),
        spec(novel={"a": {"b": 1, "c": 2}, "list": [2]}),
    ),
    "a template of another shape is taken as it is": (
        main(image="a"),
        spec(containers="none"),
        spec(containers="none"),
    ),
}


# What `kubectl patch` knows nothing of, or does otherwise, for the reasons in template.py.
NOT_AS_KUBECTL = frozenset(
    {
        "containers go by name, keep their order, and new ones follow",
        "variables go by name, and each is replaced whole",
        "a volume keeps no other source beside its new one",
        "spread constraints go by their pair",
        "fields that nobody knows merge as maps and lists do",
    }
)


@pytest.mark.parametrize("case", CASES)
def test_templates_merge_as_kubectl_apply_would(case: str) -> None:
    """One rule a case, told by its name."""
    base, over, expected = CASES[case]
    before = copy.deepcopy((base, over))
    assert merged(base, over) == expected
    assert (base, over) == before, "neither is changed"


names = st.sampled_from(("a", "b", "c"))
variables = st.lists(
    st.builds(lambda n, v: {"name": n, "value": v}, names, st.sampled_from("12")),
    max_size=2,
    unique_by=lambda each: each["name"],
)
templates = st.builds(
    lambda found, labels: {"metadata": {"labels": labels}, "spec": {"containers": found}},
    st.lists(
        st.builds(lambda n, e, t: {"name": n, "env": e, "tty": t}, names, variables, st.booleans()),
        max_size=3,
        unique_by=lambda each: each["name"],
    ),
    st.dictionaries(names, names, max_size=2),
)
lawful = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@lawful
@given(templates, templates, templates)
def test_merging_is_associative_and_idempotent(a: Json, b: Json, c: Json) -> None:
    """Without directives and nulls."""
    assert merged(merged(a, b), c) == merged(a, merged(b, c))
    assert merged(a, a) == a
    assert merged({}, a) == a
