"""Replicas of the old schema get their own fields, or their task's, and nobody else's."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from webhook.convert.polyaxon.convert import ConversionOptions, convert
from webhook.run.plan import plan

Json = dict[str, Any]
LETTERS = st.sampled_from("ab")
TERM = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}
    }
}
LABELS = st.dictionaries(LETTERS, st.sampled_from("xy"), max_size=2)
ENVIRONMENTS = st.fixed_dictionaries(
    {},
    optional={
        "node_selector": LABELS,
        "labels": LABELS,
        "annotations": LABELS,
        "tolerations": st.lists(
            LETTERS.map(lambda key: {"key": key, "operator": "Exists"}), max_size=2
        ),
        "affinity": st.sampled_from([AFFINITY, {}]),
        "resources": st.fixed_dictionaries(
            {},
            optional={
                "cpu": st.fixed_dictionaries({"limits": st.integers(0, 4)}),
                "memory": st.fixed_dictionaries({"requests": st.integers(1, 512)}),
            },
        ),
    },
)
# In a pod's spec, beside the two that are metadata.
SPEC = {"node_selector": "nodeSelector", "tolerations": "tolerations", "affinity": "affinity"}


@st.composite
def replicas(draw: st.DrawFn) -> Json:
    """The section `replicas` of two tasks, some of whose indexes have entries."""
    section: Json = {}
    for task, count in (("worker", "n_workers"), ("ps", "n_ps")):
        section[count] = draw(st.integers(1, 3))
        if draw(st.booleans()):
            section[f"default_{task}"] = draw(ENVIRONMENTS)
        chosen = draw(st.sets(st.integers(0, section[count] - 1)))
        section[task] = [{"index": index, **draw(ENVIRONMENTS)} for index in sorted(chosen)]
    return section


def expected(own: Json, default: Json, field: str) -> Any:
    """A replica's value of a field by the rule: its own whole, or else its task's.

    Resources that are there count even if there are none in them; of other fields nothing does not.
    """
    if field == "resources":
        return own[field] if field in own else default.get(field)
    return own.get(field) or default.get(field)


def quantities(resources: Json | None) -> Json:
    """Resources as a container has them; zero counts as left out."""
    result: Json = {}
    for name, unit in (("cpu", ""), ("memory", "Mi")):
        for side, amount in (resources or {}).get(name, {}).items():
            if amount:
                result.setdefault(side, {})[name] = f"{amount}{unit}"
    return result


@settings(max_examples=examples(60), deadline=None)
@given(ENVIRONMENTS, replicas())
def test_each_replica_has_its_own_field_or_its_tasks(top: Json, section: Json) -> None:
    """The master has what is at the top, and nothing of it reaches the others."""
    document = {
        "version": 1,
        "kind": "experiment",
        "framework": "tensorflow",
        "environment": {**top, "replicas": section},
        "run": {"cmd": "a"},
    }
    result = convert({"f.yml": json.dumps(document).encode()}, ConversionOptions(image="i"))
    assert result.run is not None, result.errors
    made = plan(result.run)
    owners: list[tuple[str, int, Json, Json]] = [("master", 0, top, {})]
    for task, count in (("worker", "n_workers"), ("ps", "n_ps")):
        entries = {entry["index"]: entry for entry in section[task]}
        for index in range(section[count]):
            default = section.get(f"default_{task}", {})
            owners.append((task, index, entries.get(index, {}), default))
    assert sum(made.gang.counts.values()) == len(owners)
    for role, index, own, default in owners:
        pod = made.pod(role, index, 0)
        for field, name in SPEC.items():
            assert (pod["spec"].get(name) or None) == (expected(own, default, field) or None)
        for field in ("labels", "annotations"):
            found = {k: v for k, v in pod["metadata"][field].items() if k in "ab"}
            assert found == (expected(own, default, field) or {})
        asked = quantities(expected(own, default, "resources"))
        assert pod["spec"]["containers"][0].get("resources", {}) == asked
