"""What of a pod policies match on: requested resources, volume types and the service account."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.identity import identify
from webhook.placement.pod_requests import lacking, requests
from webhook.placement.quantity import amount, nanos, unit_of
from webhook.policy.conditions import block
from webhook.policy.match_model import Match
from webhook.policy.subject import resources, service_account, subject_of, volumes

Json = dict[str, Any]


def container(**parts: dict[str, object]) -> dict[str, object]:
    return {"name": "c", "resources": parts}


@pytest.mark.parametrize("amount", ["1", 1, "500m", "0.5", "1Gi", "1e3", ".5"])
def test_a_resource_that_some_container_requests_counts(amount: object) -> None:
    """An init container's and the pod's own too; and a limit alone requests as much."""
    gpu = {"nvidia.com/gpu": amount}
    for spec in (
        {"containers": [container(), container(requests=gpu)]},
        {"initContainers": [container(limits=gpu)]},
        {"resources": {"limits": gpu}, "containers": [container()]},
    ):
        assert resources(spec) == {"nvidia.com/gpu"}


@pytest.mark.parametrize("amount", ["0", 0, "0Gi", "0.0", "0m", "0e3", None])
def test_a_request_of_nothing_is_none(amount: object) -> None:
    """A template's zero is no word for the resource."""
    if amount is not None:
        assert resources({"containers": [container(requests={"gpu": amount})]}) == set()


def test_a_claim_of_a_device_is_not_a_resource() -> None:
    """Another object has the device (dynamic resource allocation)."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    uses = {"name": "c", "resources": {"claims": [{"name": "gpu"}]}}
    assert resources({"resourceClaims": claims, "containers": [uses]}) == set()


def test_a_volume_is_of_the_type_of_its_other_member() -> None:
    """Null members are absent."""
    spec = {
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "x"}},
            {"name": "b", "emptyDir": {}, "secret": None},
        ]
    }
    assert volumes(spec) == {"persistentVolumeClaim", "emptyDir"}


@pytest.mark.parametrize("volume", [{"name": "e"}, {"name": "e", "emptyDir": None}, {}])
def test_a_volume_without_a_source_is_an_emptydir(volume: dict[str, object]) -> None:
    """As the API server stores it; without volumes there is none."""
    assert volumes({"volumes": [volume]}) == {"emptyDir"}
    assert volumes({"volumes": []}) == volumes({}) == set()


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "default"),
        ({"serviceAccountName": ""}, "default"),
        ({"serviceAccountName": None, "serviceAccount": None}, "default"),
        ({"serviceAccountName": "trainer"}, "trainer"),
        ({"serviceAccount": "trainer"}, "trainer"),
        ({"serviceAccountName": "trainer", "serviceAccount": "other"}, "trainer"),
    ],
)
def test_a_pod_has_the_service_account_that_the_api_server_gives_it(
    spec: dict[str, object], name: str
) -> None:
    """The deprecated field counts where the other is empty, as the API server reads the two."""
    assert service_account(spec) == name


junk = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
)


@given(junk)
def test_whatever_stands_there_is_read_without_an_error(value: object) -> None:
    """Containers and volumes are none of placement's business: only what is well formed counts."""
    for holder in (
        {"containers": value, "volumes": value},
        {"containers": [{"resources": value}]},
        {"resources": value},
        {"serviceAccountName": value, "serviceAccount": value},
    ):
        resources(holder)
        volumes(holder)
        assert service_account(holder)


resource_lists = st.dictionaries(
    st.sampled_from(["cpu", "nvidia.com/gpu"]), st.sampled_from(["0", "1", "500m", "3"]), max_size=2
)
containers = st.builds(
    lambda requests, limits, sidecar: {
        "resources": {"requests": requests, "limits": limits},
        **({"restartPolicy": "Always"} if sidecar else {}),
    },
    resource_lists,
    resource_lists,
    st.booleans(),
)


@given(
    st.lists(containers, min_size=1, max_size=3),
    st.lists(containers, max_size=3),
    resource_lists,
    st.sampled_from(["cpu", "nvidia.com/gpu"]),
    st.sampled_from(["1", "1500m", 2, "4"]),
)
def test_the_amount_that_a_policy_matches_is_the_one_that_the_scheduler_counts(
    main: list[Json], init: list[Json], overhead: dict[str, str], resource: str, bound: str | int
) -> None:
    """A pod requests at least as much as any node lacks that has less; at most what one has."""
    spec = {"containers": main, "initContainers": init, "overhead": overhead}
    needed, limit = requests(spec), amount(resource, bound)
    has_some = needed.get(resource, 0) > 0
    # A node that has as much as the bound, and one that has a unit less.
    enough, short = ({**needed, "pods": 1, resource: room} for room in (limit, limit - 1))
    least = {"match": {"requests": [{"resource": resource, "atLeast": bound}]}}
    most = {"match": {"requests": [{"resource": resource, "atMost": bound}]}}
    exact = amount(resource, bound) * unit_of(resource) == nanos(bound)
    assert matches(spec, least) == (has_some and lacking(needed, short) is not None)
    if exact:
        assert matches(spec, most) == (has_some and lacking(needed, enough) is None)


def matches(spec: Json, policy: Json) -> bool:
    """Whether a policy with this match is for a pod with this spec."""
    match = Match.model_validate(policy["match"])
    identity = identify({"fairlead.dev/run": "r"}, {}, {})
    assert identity is not None
    subject = subject_of("ml", {}, {}, identity, spec, {"requests"}, {})
    return block(match).holds(subject)
