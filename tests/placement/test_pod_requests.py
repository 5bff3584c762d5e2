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


SIDECARS = [
    container(cpu="100m", sidecar=True),
    container(cpu="800m"),
    container(cpu="200m", sidecar=True),
    container(cpu="1"),
]
FIRST = [container(cpu="2", memory="1Gi"), container(cpu="2", memory="3Gi")]
TOGETHER = [container(cpu="2", memory="1Gi"), container(cpu="1", memory="1Gi")]
PAGES = {"requests": {"hugepages-2Mi": "4Mi"}}
OF_POD = {"cpu": "2", "nvidia.com/gpu": "9", "hugepages-2Mi": "4Mi"}
# By rule: fields of a pod's spec, and what it asks for.
SUMS: dict[str, tuple[Json, Json]] = {
    "containers run together, and their sum is rounded once": (
        {"containers": [container(cpu="500m", memory="1Gi"), container(cpu="1.0005")]},
        {"cpu": 1501, "memory": 2**30},
    ),
    "a limit requests as much where there is no request": (
        {"containers": [container({"cpu": "4", "nvidia.com/gpu": "2"}, cpu="1")]},
        {"cpu": 1000, "nvidia.com/gpu": 2},
    ),
    "the largest init container counts if it is more than all containers": (
        {"containers": TOGETHER, "initContainers": FIRST},
        {"cpu": 3000, "memory": 3 * 2**30},
    ),
    "an init container runs beside the sidecars before it": (
        {"initContainers": SIDECARS, "containers": [container(cpu="700m")]},
        {"cpu": 1300},
    ),
    "all containers run beside all sidecars": (
        {"initContainers": SIDECARS, "containers": [container(cpu="1500m")]},
        {"cpu": 1800},
    ),
    "the pod's own counts instead of its containers', but for devices": (
        {
            "containers": [container({"nvidia.com/gpu": "1"}, cpu="4")],
            "resources": {"requests": OF_POD},
        },
        {"cpu": 2000, "nvidia.com/gpu": 1, "hugepages-2Mi": 4 * 2**20},
    ),
    "a pod's limit counts where nothing requests": (
        {
            "containers": [container(cpu="1")],
            "resources": {"limits": {"cpu": 4, "memory": "1G"}},
        },
        {"cpu": 1000, "memory": 10**9},
    ),
    "a pod's limit of huge pages counts in any case": (
        {"containers": [{"resources": PAGES}], "resources": {"limits": {"hugepages-2Mi": "8Mi"}}},
        {"hugepages-2Mi": 8 * 2**20},
    ),
    "a sum has 64 bits, as the scheduler's": (
        {"containers": [container(cpu="9E", memory="9E")] * 3},
        {"cpu": 2**63 - 1, "memory": 2**63 - 1},
    ),
    "a number is as good as its text": (
        {"containers": [{"resources": {"requests": {"cpu": 0.5, "memory": 1e9}}}]},
        {"cpu": 500, "memory": 10**9},
    ),
    "the overhead of the RuntimeClass comes on top": (
        {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
        {"cpu": 1250, "memory": 64 * 2**20},
    ),
    "nothing is asked by default": ({}, {}),
    "no containers ask for nothing": ({"containers": [{"name": "main"}]}, {}),
    "zero is nothing": ({"containers": [container(cpu="0", memory="0Gi")]}, {}),
    "what cannot be read is the API server's to refuse": (
        {"containers": [container(cpu="much"), {"resources": "none"}, "odd"]},
        {},
    ),
    "nulls and lists are no amounts": (
        {"containers": [{"resources": {"requests": {"cpu": None}, "limits": []}}]},
        {},
    ),
    "nor are other shapes": ({"containers": None, "initContainers": {}, "resources": 5}, {}),
}


@pytest.mark.parametrize("rule", SUMS)
def test_requests_are_summed_as_the_scheduler_does(rule: str) -> None:
    """Each of them is a rule of its own."""
    spec, asked = SUMS[rule]
    assert requests(spec) == asked


def test_what_many_init_containers_cost_grows_with_their_number() -> None:
    """Not with its square: that takes minutes, and the test is stopped."""
    first = [extended(f"s{each}", "1", sidecar=True) for each in range(30_000)]
    then = [extended(f"i{each}", "2") for each in range(30_000)]
    asked = requests({"initContainers": [*first, *then, extended("s7", "3")]})
    assert (len(asked), asked["e.x/s8"], asked["e.x/i8"], asked["e.x/s7"]) == (60_000, 1, 2, 4)


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
