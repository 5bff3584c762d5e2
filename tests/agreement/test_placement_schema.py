"""What the placement schema takes, the real API server takes in a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.examples import examples
from tests.fast_yaml import load_all_yaml
from tests.policy.examples import EVERYTHING, GONE, changed, places
from webhook import names
from webhook.placement.schema.placement import PlacementModel
from webhook.sandbox.control_plane import ControlPlane

# Fields that name objects of the cluster, or that are no fields of a pod.
APART = {"capacity", "patchStrategy", "priorityClassName", "runtimeClassName"}
DOCUMENTS = load_all_yaml(EVERYTHING)
SPEC = next(each["spec"] for each in DOCUMENTS if each["kind"] == names.POLICY_KIND)
WHOLE = SPEC["defaults"] | SPEC["overrides"] | SPEC["requirements"] | {"nodeName": "n1"}
LABELS = {"run": "r", "tenant": "t", "zone": "z", "a": "b"}
# One placement with every field that a pod has.
PLACEMENT = {field: WHOLE[field] for field in PlacementModel.outer_names() if field not in APART}
VALUES: st.SearchStrategy[Any] = (
    st.just(GONE)
    | st.sampled_from(["", "a", "A", "a b", "-8", "8", "8.5", "a/b", "A.b/c", "x" * 64, "x" * 254])
    | st.sampled_from(["Exists", "Equal", "In", "NotIn", "Gt", "Lt", "DoesNotExist"])
    | st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule", "ScheduleAnyway", "Ignore"])
    | st.sampled_from(["Localhost", "RuntimeDefault", "zone", "run", "tenant", "Always"])
    | st.sampled_from(["MountOption", "Recursive", "Merge", "Strict", "OnRootMismatch"])
    | st.sampled_from([0, 1, -1, 2, 100, 101, 2**31 - 1, 2**31, 2**63, 1.5, True, False])
    | st.sampled_from([[], {}, ["a"], ["a", "b"], ["5"], ["run"], ["run", "run"], {"a": "b"}])
    | st.just({"matchExpressions": [{"key": "run", "operator": "Exists"}]})
)


@st.composite
def placements(draw: st.DrawFn) -> dict[str, Any]:
    """The whole placement with one to three values changed or taken away.

    Some of the values are from elsewhere in the placement: what may not be in two places is.
    """
    placement = PLACEMENT
    for _ in range(draw(st.integers(1, 3))):
        if paths := list(places(placement)):
            others = st.sampled_from(sorted(_texts(placement))).flatmap(
                lambda text: st.sampled_from([text, [text], [text, text]])
            )
            placement = changed(placement, draw(st.sampled_from(paths)), draw(VALUES | others))
    return placement


def _texts(placement: dict[str, Any]) -> set[str]:
    """Keys of labels, and values that are texts."""
    ends = {path[-1] for path in places(placement)}
    return {each for each in ends if isinstance(each, str)} | set(_values(placement)) | {""}


def _values(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _values(each)


def pod(placement: PlacementModel) -> dict[str, Any]:
    spec = placement.model_dump(by_alias=True, exclude_none=True)
    metadata = {name: spec.pop(name) for name in ("labels", "annotations") if name in spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        # Keys are merged into a selector for labels that the pod has.
        "metadata": {"name": "p", **metadata, "labels": LABELS | metadata.get("labels", {})},
        "spec": {"containers": [{"name": "c", "image": "example.invalid/none"}], **spec},
    }


@pytest.fixture(scope="module")
def own_namespace(control_plane: ControlPlane) -> str:
    """A namespace for dry runs alone; nothing is ever in it."""
    control_plane.create_namespace("placement-schema")
    return "placement-schema"


@settings(
    deadline=None,
    max_examples=examples(600),
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(placement=placements())
def test_what_the_schema_takes_the_api_server_takes(
    control_plane: ControlPlane, own_namespace: str, placement: dict[str, Any]
) -> None:
    """No policy that passes the check can make a pod that the API server refuses for its form."""
    try:
        model = PlacementModel.model_validate(placement, by_alias=True, by_name=False)
    except ValidationError:
        reject()
    path = f"/api/v1/namespaces/{own_namespace}/pods?dryRun=All&fieldValidation=Strict"

    status, answer = control_plane.api.call("POST", path, pod(model))
    assert status == 201, answer["message"]


def test_the_whole_placement_is_taken(control_plane: ControlPlane, own_namespace: str) -> None:
    """So that the test above changes something that was good before."""
    model = PlacementModel.model_validate(PLACEMENT, by_alias=True, by_name=False)
    path = f"/api/v1/namespaces/{own_namespace}/pods?dryRun=All&fieldValidation=Strict"

    status, answer = control_plane.api.call("POST", path, pod(model))
    assert status == 201, answer
