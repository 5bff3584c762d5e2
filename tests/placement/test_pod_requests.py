"""What a pod asks of one node, as the scheduler sums it up."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.placement.pod_requests import Lack, lacking, requests

Json = dict[str, Any]
NODE = {"cpu": 8000, "memory": 32, "pods": 110}


def container(limits: Json | None = None, *, sidecar: bool = False, **asked: str) -> Json:
    resources = {"requests": asked} | ({"limits": limits} if limits else {})
    return {"resources": resources} | ({"restartPolicy": "Always"} if sidecar else {})


def extended(name: str, amount: str, *, sidecar: bool = False) -> Json:
    """A container that requests one extended resource."""
    made = container(sidecar=sidecar)
    made["resources"]["requests"] = {f"e.x/{name}": amount}
    return made


def test_containers_run_together() -> None:
    """Their requests are summed, exactly, and rounded once."""
    spec = {"containers": [container(cpu="500m", memory="1Gi"), container(cpu="1.0005")]}
    assert requests(spec) == {"cpu": 1501, "memory": 2**30}


def test_a_limit_requests_as_much() -> None:
    """Where there is no request, as the API server writes it."""
    spec = {"containers": [container({"cpu": "4", "nvidia.com/gpu": "2"}, cpu="1")]}
    assert requests(spec) == {"cpu": 1000, "nvidia.com/gpu": 2}


def test_init_containers_run_one_after_the_other() -> None:
    """The largest of them counts, if it is more than all containers."""
    spec = {
        "containers": [container(cpu="2", memory="1Gi"), container(cpu="1", memory="1Gi")],
        "initContainers": [container(cpu="2", memory="1Gi"), container(cpu="2", memory="3Gi")],
    }
    assert requests(spec) == {"cpu": 3000, "memory": 3 * 2**30}


def test_sidecars_stay() -> None:
    """Each init container runs beside the sidecars before it, and all containers beside all."""
    spec = {
        "initContainers": [
            container(cpu="100m", sidecar=True),
            container(cpu="800m"),
            container(cpu="200m", sidecar=True),
            container(cpu="1"),
        ],
        "containers": [container(cpu="700m")],
    }
    assert requests(spec) == {"cpu": 1300}
    spec["containers"] = [container(cpu="1500m")]
    assert requests(spec) == {"cpu": 1800}


def test_what_many_init_containers_cost_grows_with_their_number() -> None:
    """Not with its square: that takes minutes, and the test is stopped."""
    first = [extended(f"s{each}", "1", sidecar=True) for each in range(30_000)]
    then = [extended(f"i{each}", "2") for each in range(30_000)]
    asked = requests({"initContainers": [*first, *then, extended("s7", "3")]})
    assert (len(asked), asked["e.x/s8"], asked["e.x/i8"], asked["e.x/s7"]) == (60_000, 1, 2, 4)


def test_what_the_pod_is_given_counts_instead_of_its_containers() -> None:
    """For cpu, memory and huge pages; devices are the containers'."""
    spec = {
        "containers": [container({"nvidia.com/gpu": "1"}, cpu="4")],
        "resources": {"requests": {"cpu": "2", "nvidia.com/gpu": "9", "hugepages-2Mi": "4Mi"}},
    }
    assert requests(spec) == {"cpu": 2000, "nvidia.com/gpu": 1, "hugepages-2Mi": 4 * 2**20}


def test_a_pods_limit_counts_without_a_request() -> None:
    """As the API server defaults it."""
    spec = {"containers": [container(cpu="1")], "resources": {"limits": {"cpu": 4, "memory": "1G"}}}
    assert requests(spec) == {"cpu": 1000, "memory": 10**9}


def test_a_pods_limit_of_huge_pages_counts_whatever_its_containers_request() -> None:
    """As the API server defaults it: they are never promised twice."""
    limits = {"hugepages-2Mi": "8Mi"}
    spec = {
        "containers": [{"resources": {"requests": {"hugepages-2Mi": "4Mi"}}}],
        "resources": {"limits": limits},
    }
    assert requests(spec) == {"hugepages-2Mi": 8 * 2**20}


def test_a_sum_is_as_wide_as_the_schedulers() -> None:
    """64 bits: whoever remembers what was asked need not hold more."""
    spec = {"containers": [container(cpu="9E", memory="9E")] * 3}
    assert requests(spec) == {"cpu": 2**63 - 1, "memory": 2**63 - 1}


def test_a_number_is_as_good_as_its_text() -> None:
    """The API server takes both, and YAML makes a number of what has no quotes."""
    assert requests({"containers": [{"resources": {"requests": {"cpu": 0.5, "memory": 1e9}}}]}) == {
        "cpu": 500,
        "memory": 10**9,
    }


def test_overhead_comes_on_top() -> None:
    """That of the RuntimeClass, which the API server writes into the pod."""
    spec = {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "64Mi"}}
    assert requests(spec) == {"cpu": 1250, "memory": 64 * 2**20}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": []},
        {"containers": [{"name": "main"}]},
        {"containers": [container(cpu="0", memory="0Gi")]},
        {"containers": [container(cpu="much"), {"resources": "none"}, "odd"]},
        {"containers": [{"resources": {"requests": {"cpu": None}, "limits": []}}]},
        {"containers": None, "initContainers": {}, "resources": 5},
    ],
)
def test_nothing_is_asked_by_default(spec: Json) -> None:
    """What cannot be read is the API server's to refuse."""
    assert requests(spec) == {}


@pytest.mark.parametrize(
    ("requests", "lack"),
    [
        ({}, None),
        ({"cpu": 8000, "memory": 32}, None),
        ({"cpu": 8001}, Lack("cpu", 8001, 8000)),
        ({"nvidia.com/gpu": 1}, Lack("nvidia.com/gpu", 1, 0)),
        ({"nvidia.com/gpu": 1, "cpu": 9000}, Lack("cpu", 9000, 8000)),
    ],
)
def test_a_request_may_be_all_that_there_is(requests: dict[str, int], lack: Lack | None) -> None:
    """More than that is named; of several the first by name."""
    assert lacking(requests, NODE) == lack


def test_a_node_that_takes_no_pods_takes_none() -> None:
    """Whatever else it has."""
    assert lacking({}, {"cpu": 8000}) == Lack("pods", 1, 0)


def test_a_node_without_status_has_no_shortfall() -> None:
    """It may have been read from a file without its status."""
    assert lacking({"cpu": 1000}, None) is None
