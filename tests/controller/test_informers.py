"""What is watched, and catching up with what the watches have not told yet."""

from __future__ import annotations

import asyncio

import pytest

from tests.controller.runs import Api, raw_pod, raw_run, refused
from tests.kube.fake_api import until
from webhook.controller import informers as module
from webhook.controller.informers import Informers
from webhook.controller.observed_state import ObservedState
from webhook.kube.client import METADATA_LIST
from webhook.kube.watches import Watches

LISTS = ("runs", "pods", "services", "configmaps", "deployments")


def empty_lists(api: Api) -> None:
    for resource in LISTS:
        api.answers["list", resource] = {"items": []}


def synced() -> ObservedState:
    known = ObservedState()
    for cache in (known.runs, known.pods, known.services, known.config_maps, known.deployments):
        cache.replace({}, "50")
    return known


def test_runs_are_watched_whole_and_else_only_what_is_marked_as_ours() -> None:
    """Never all pods of the cluster, and by a label that no other tool writes."""
    informers = Informers(Watches(Api().client), ObservedState())
    queries = {each.resource: dict(each.query) for each in informers.all}
    ours = {"labelSelector": "fairlead.dev/run-uid"}
    assert queries == {resource: {} if resource == "runs" else ours for resource in LISTS}


def test_nodes_and_classes_are_watched_if_permitted() -> None:
    """In a namespace alone nobody has the right to; nothing waits for them."""
    beside = Informers(Watches(Api().client), ObservedState()).beside
    assert [each.resource for each in beside] == ["nodes", "capacityclasses"]
    assert Informers(Watches(Api().client), ObservedState(), "lab", nodes=False).beside == ()
    of_all = Informers(Watches(Api().client), ObservedState(), "lab").beside
    assert not any("/namespaces/" in each.path for each in of_all)


def test_one_namespace_is_watched_by_its_own_paths() -> None:
    """For that a Role is enough."""
    informers = Informers(Watches(Api().client), ObservedState(), "lab")
    assert all("/namespaces/lab/" in each.path for each in informers.all)


def test_runs_are_caught_up_with_before_what_they_own() -> None:
    """A newer status beside older pods would count a failure twice."""
    api = Api()
    empty_lists(api)
    asyncio.run(Informers(Watches(api.client), synced()).catch_up())
    assert api.named("list") == list(LISTS)


def test_what_others_wrote_large_is_read_in_small_pages_and_config_maps_without_their_data() -> (
    None
):
    """A page is in memory as a whole, and a ConfigMap's data may be a megabyte."""
    api = Api()
    empty_lists(api)
    asyncio.run(Informers(Watches(api.client), synced()).catch_up())
    assert {size for size, _ in api.pages.values()} == {module.A_PAGE}
    assert [name for name, (_, form) in api.pages.items() if form == METADATA_LIST] == [
        "configmaps"
    ]


def test_catching_up_takes_what_is_newer_and_forgets_what_is_gone() -> None:
    """The watch, which is behind, changes none of it back."""
    api, known = Api(versions=200), synced()
    empty_lists(api)
    old, gone = raw_pod(0, version=40), raw_pod(1, version=41)
    known.pods.put("lab/mnist-worker-0", known.pods.keep(old))
    known.pods.put("lab/mnist-worker-1", known.pods.keep(gone))
    newer = {**raw_pod(0, version=60), "status": {"phase": "Running"}}
    api.answers["list", "pods"] = {"items": [newer]}
    api.answers["list", "runs"] = {"items": [raw_run(version=61, status={"phase": "Running"})]}
    asyncio.run(Informers(Watches(api.client), known).catch_up())
    stored = known.runs.get("lab/mnist")
    assert stored is not None
    assert stored.phase == "Running"
    known.pods.put("lab/mnist-worker-0", known.pods.keep(old), "55")
    known.pods.put("lab/mnist-worker-1", known.pods.keep(gone), "55")
    pod = known.pods.get("lab/mnist-worker-0")
    assert pod is not None
    assert pod.phase == "Running"
    assert known.pods.get("lab/mnist-worker-1") is None


async def test_a_list_that_fails_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who leads without having caught up could do harm."""
    api = Api()
    empty_lists(api)
    api.answers["list", "pods"] = refused(503)
    monkeypatch.setattr(module, "RETRY", 0.0)
    catching = asyncio.create_task(Informers(Watches(api.client), synced()).catch_up())
    await until(lambda: len(api.named("list")) >= 5)
    assert set(api.named("list")[1:]) == {"pods"}
    empty_lists(api)
    await catching
    assert api.named("list")[-4:] == list(LISTS[1:])


async def test_before_every_cache_is_filled_no_process_leads() -> None:
    """A run without its pods would look as if they had vanished."""
    api, known = Api(), ObservedState()
    empty_lists(api)
    catching = asyncio.create_task(Informers(Watches(api.client), known).catch_up())
    for cache in (known.runs, known.services, known.config_maps, known.deployments):
        cache.replace({}, "50")
    for _ in range(20):
        await asyncio.sleep(0)
    assert api.calls == []
    known.pods.replace({}, "50")
    await catching
    assert len(api.calls) == 5
