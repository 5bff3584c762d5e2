"""Run files are read with lines, every error at once, and as the API server would take them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wording import Wording, mentions
from webhook.policy.reader import Foreign
from webhook.run.run_documents import Runs, placeholder_name, read_runs

RUN = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: mnist}
spec:
  framework: tensorflow
  template: {spec: {containers: [{name: main, image: mnist}]}}
  replicas:
    master: {}
    worker:
      count: 7
"""
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storage: yes}
"""
POLICY = """\
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: p}
spec: {overrides: {nodeName: n}}
"""


def runs(text: str) -> Runs:
    """What one file holds."""
    return read_runs({"run.yaml": text.encode()})


def lines(text: str) -> list[str]:
    """The findings of one file, without its name."""
    return [str(finding).removeprefix("run.yaml:") for finding in runs(text).findings]


def test_a_run_is_read_with_the_places_of_its_fields() -> None:
    """Whoever plans a run later can still say in which line it is wrong."""
    (document,) = runs(RUN).sound()

    assert document.model.name == "mnist"
    assert document.model.spec.roles["worker"].count == 7
    assert document.locate(("spec", "replicas", "worker", "count")) == (10, 14)


def test_a_null_is_a_field_left_out() -> None:
    """As for the API server, whatever the field's default is: `disruptionLimit: null` is none."""
    with_nulls = (
        RUN + "      byIndex:\n  disruptionLimit: null\n  backoffLimit: ~\n  environment:\n"
    )

    (document,) = runs(with_nulls).sound()
    (plain,) = runs(RUN).sound()
    assert document.model == plain.model


def test_a_null_in_a_mapping_is_left_out_and_one_in_a_list_is_an_error(wording: Wording) -> None:
    """The API server drops the one, and refuses the other."""
    (document,) = runs(RUN + "  environment: {nodeSelector: {a: b, c: null}}\n").sound()
    assert document.model.spec.environment is not None
    assert document.model.spec.environment.node_selector == {"a": "b"}

    (line,) = lines(RUN + "  environment: {tolerations: [null]}\n")
    mentions(line, "11:31: spec.environment.tolerations[0]: ", "null")
    wording(line)


def test_a_null_in_a_template_stays() -> None:
    """There it is a pod's, or takes away what the layer below says."""
    (document,) = runs(RUN.replace("image: mnist", "image: mnist, command: null")).sound()

    assert document.model.spec.template["spec"]["containers"] == [
        {"name": "main", "image": "mnist", "command": None}
    ]


@pytest.mark.parametrize(
    ("image", "fact"), [("on", "boolean"), ("010", "number"), (".inf", "JSON does not have")]
)
def test_what_readers_of_yaml_dispute_is_an_error_in_a_template_too(
    image: str, fact: str, wording: Wording
) -> None:
    """kubectl would send something else than what is previewed."""
    (line,) = lines(RUN.replace("image: mnist", f"image: {image}"))

    assert line.startswith(f"6:54: spec.template.spec.containers[0].image: {image} ")
    mentions(line, fact, "quote it")
    wording(line)


def test_what_else_kubectl_would_apply_is_passed_over_and_named() -> None:
    """A Run's file may bring its volume claim, and the policies beside it, right or wrong."""
    found = runs(f"{CLAIM}---\n{RUN}---\n{POLICY}")

    assert [document.model.name for document in found.sound()] == ["mnist"]
    assert found.foreign == (
        Foreign("run.yaml", 1, "PersistentVolumeClaim", "data"),
        Foreign("run.yaml", 17, "PlacementPolicy", "p"),
    )


def test_the_items_of_a_list_are_documents() -> None:
    """`kubectl get runs -o yaml` prints a List, with what the API server adds."""
    (document,) = runs(RUN).sound()
    stored = document.model.model_dump(by_alias=True, exclude_none=True) | {
        "metadata": {
            "name": "mnist",
            "namespace": "team-a",
            "generateName": "mn",
            "managedFields": [{"fieldsV1": {"f:spec": None}}],
            "creationTimestamp": None,
        },
        "status": {"phase": "Running", "somethingNewer": None},
    }
    items = {"apiVersion": "v1", "kind": "List", "items": [stored, {"kind": "x"}]}

    found = runs(json.dumps(items))
    assert [each.model.namespace for each in found.documents] == ["team-a"]
    assert [each.path for each in found.findings] == ["items[1].kind"]


@settings(deadline=None, max_examples=examples(50))
@given(st.text(max_size=60), st.integers(0, len(RUN)))
def test_no_text_makes_reading_fail(text: str, at: int) -> None:
    """Whatever stands in the middle of a Run, the answer is documents and findings."""
    assert isinstance(runs(RUN[:at] + text + RUN[at:]).findings, tuple)


def test_a_generated_name_has_a_placeholder_where_it_is_asked_for() -> None:
    """Else a name is required. The API server cuts a prefix, so that a name has 63 characters."""
    text = RUN.replace("name: mnist", "generateName: mnist-", 1).encode()
    (document,) = read_runs({"run.yaml": text}, placeholders=True).sound()
    assert document.model.name == "mnist-xxxxx"
    assert [each.path for each in read_runs({"run.yaml": text}).errors] == ["metadata.name"]
    assert placeholder_name("m" * 60) == "m" * 58 + "xxxxx"


def test_a_name_is_kept_beside_a_prefix() -> None:
    """The API server generates none then; an empty prefix is none."""
    for metadata, expected in (
        ("{name: a, generateName: b-}", "a"),
        ('{generateName: ""}', None),
        ("{generateName: 3}", None),
    ):
        text = RUN.replace("{name: mnist}", metadata, 1).encode()
        found = read_runs({"run.yaml": text}, placeholders=True).documents
        assert [each.model.name for each in found] == [expected] * bool(expected)
