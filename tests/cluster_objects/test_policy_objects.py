"""Policies and classes of a cluster, from an API server that is not always there."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.kube.fake_api import Answer, FakeApi, Request, client_of, fake_api, until
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.api_paths import ApiPath
from webhook.cluster_objects.policy_objects import (
    DEFINITION_SETTLES,
    PolicyObjects,
    objects_of,
    read_objects,
    text_of,
)
from webhook.errors import ClusterError, InvalidDocuments
from webhook.kube.watches import Watches
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.policy.load import load
from webhook.questions.cluster_surroundings import read_policies

POLICIES, CLASSES = objects_of("placementpolicies"), objects_of("capacityclasses")
EXCEPTIONS = objects_of("placementexceptions")
GROUP = ApiPath.of_version("fairlead.dev/v1alpha1")
POOL = {"defaults": {"nodeSelector": {"pool": "a"}}}
FILE = b"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: p}
spec: {defaults: {nodeSelector: {pool: a}}}
"""


def seen(name: str, version: int, spec: Any = POOL, **more: Any) -> dict[str, Any]:
    """An object as a list has it: without its kind."""
    metadata = {"name": name, "resourceVersion": str(version), "managedFields": [{"time": version}]}
    return {"metadata": metadata, "spec": spec, **more}


def page(*items: dict[str, Any], version: int = 1) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(items)}


async def forbidden(request: Request, to: Answer) -> bool:
    """Refuse to show definitions; whether it was asked for one."""
    asked = "/customresourcedefinitions/" in request.path
    if asked:
        await to.status(403, "Forbidden", "no right")
    return asked


@asynccontextmanager
async def watching(
    folder: Path, answer: Callable[[Request, Answer], Awaitable[None]]
) -> AsyncIterator[tuple[PolicyObjects[bytes], FakeApi]]:
    async with (
        fake_api(answer) as api,
        client_of(api, folder) as client,
        Watches(client) as watches,
    ):
        yield PolicyObjects(watches, text_of), api


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def open_watch(to: Answer) -> None:
    await to.begin()
    await _for_ever()


async def test_a_cluster_s_set_is_that_of_the_same_documents_in_files(tmp_path: Path) -> None:
    """Whatever the API server adds to an object."""

    async def answer(request: Request, to: Answer) -> None:
        items = [seen("p", 7, status={"conditions": []})] if request.path == POLICIES else []
        if not await forbidden(request, to):
            await to.json(page(*items))

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        result = (await read_policies(client)).policies.hash
    assert result == load({"p.yaml": FILE}).policies.hash


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (404, "kubectl apply -f manifests/crds/placementpolicies.fairlead.dev.yaml"),
        (403, "list and watch of placementpolicies, capacityclasses, placem"),
        (403, "ClusterRole fairlead-policies-view"),
        (500, "as the test wants it"),
    ],
)
async def test_what_cannot_be_read_says_the_cure(tmp_path: Path, code: int, says: str) -> None:
    """Read once, or watched: then it is not synced."""

    async def answer(_request: Request, to: Answer) -> None:
        await to.status(code, "X", "as the test wants it")

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError, match=says) as caught:
            await read_objects(client)
        assert caught.value.status == code
    async with watching(tmp_path, answer) as (watched, _):
        await until(lambda: says in watched.trouble())
        assert not watched.synced


async def test_policies_of_which_fields_are_dropped_are_trouble_of_the_cluster(
    tmp_path: Path,
) -> None:
    """Commands and pages have a case for that. Each definition is read once."""
    read: list[str] = []

    async def answer(request: Request, to: Answer) -> None:
        name = request.path.rpartition("/customresourcedefinitions/")[2]
        if name == request.path:
            await to.json(page())
            return
        read.append(name)
        await to.json({"metadata": {"name": name, "uid": name}, "spec": {}})

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError, match="the API server drops") as caught:
            await read_policies(client)
    assert caught.value.status is None
    assert sorted(read) == sorted({*read})


async def test_garbage_objects_are_findings_at_their_places(tmp_path: Path) -> None:
    """No object can end the reading of the others."""

    async def answer(request: Request, to: Answer) -> None:
        wrong = [seen("a", 1, None), seen("b", 2, [1]), {"metadata": {"name": "c"}, "x": 1}]
        if not await forbidden(request, to):
            await to.json(page(*wrong))

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        with pytest.raises(InvalidDocuments) as caught:
            await read_policies(client)
        said = [str(finding) for finding in caught.value.findings]
    (line,) = (each for each in said if each.startswith("placementpolicies/b: spec: "))
    mentions(line, "mapping", "list")
    assert "capacityclasses/c: spec: is required" in said
    assert len({line.split(":")[0] for line in said}) == 12


async def test_only_what_a_set_is_made_of_is_a_change(tmp_path: Path) -> None:
    """A status that is written over and over compiles nothing."""
    go_on = asyncio.Event()

    async def answer(request: Request, to: Answer) -> None:
        if not request.is_watch:
            await to.json(page())
            return
        await to.begin()
        if request.path == POLICIES:
            await to.event("ADDED", seen("p", 2))
            await to.event("MODIFIED", seen("p", 3, status={"decided": 5}))
            await go_on.wait()
            await to.event("MODIFIED", seen("p", 4, {"priority": 1}))
            await to.event("DELETED", seen("p", 5, {"priority": 1}))
        await _for_ever()

    changes: list[int] = []
    async with watching(tmp_path, answer) as (watched, _):
        watched.subscribe(lambda _: changes.append(len(watched.objects())))
        await watched.wait_synced()
        await until(lambda: len(changes) == 1)
        (text,) = watched.objects().values()
        assert list(watched.objects()) == ["placementpolicies/p"]
        assert orjson.loads(text) == an_object(
            "fairlead.dev/v1alpha1", "PlacementPolicy", "p", POOL
        )
        go_on.set()
        await until(lambda: len(changes) == 3)
    assert changes == [1, 1, 0]


@pytest.mark.parametrize(
    ("resources", "gone"),
    [
        ({"placementpolicies": ["get", "create"], "capacityclasses": ["create"]}, ""),
        (
            {"placementpolicies": ["delete", "list"], "capacityclasses": ["create"]},
            "placementpolicies.fairlead.dev",
        ),
        ({"runs": ["create"]}, "placementpolicies.fairlead.dev, capacityclasses.fairlead.dev"),
        (None, "placementpolicies.fairlead.dev, capacityclasses.fairlead.dev"),
    ],
)
async def test_a_definition_being_deleted_is_distinguished_from_one_without_objects(
    tmp_path: Path, resources: dict[str, list[str]] | None, gone: str
) -> None:
    """By what discovery says of it: no object can be created any more."""

    async def answer(request: Request, to: Answer) -> None:
        assert request.path == GROUP
        if resources is None:
            await to.status(404, "NotFound", "404 page not found")
        else:
            found = [{"name": name, "verbs": verbs} for name, verbs in resources.items()]
            await to.json({"kind": "APIResourceList", "resources": found})

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        result = await PolicyObjects(Watches(client), text_of).undefined()
    assert result == gone


class Defined:
    """An API server with one policy, which its definition may drop a field from."""

    def __init__(self) -> None:
        self.whole = custom_resource_definitions()[names.POLICY_KIND]
        self.generation = 1
        self.drops = False
        self.code = 200
        self.lists = 0

    def define(self, *, drops: bool) -> None:
        """Apply another definition."""
        self.drops, self.generation = drops, self.generation + 1

    async def answer(self, request: Request, to: Answer) -> None:
        if request.is_watch:
            await open_watch(to)
        elif "customresourcedefinitions" in request.path:
            await self._definition(request, to)
        else:
            spec = {**POOL} if self.drops else {**POOL, "rollout": {"namespaces": ["a"]}}
            self.lists += request.path == POLICIES
            await to.json(page(*([seen("p", 7, spec)] if request.path == POLICIES else [])))

    async def _definition(self, request: Request, to: Answer) -> None:
        if self.code != 200:
            await to.status(self.code, "X", "no answer")
        elif not request.path.endswith(self.whole["metadata"]["name"]):
            await to.status(404, "NotFound", "none")
        else:
            found = copy.deepcopy(self.whole)
            spec = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            if self.drops:
                del spec["properties"]["rollout"]
                del spec["x-kubernetes-preserve-unknown-fields"]
            metadata = {**found["metadata"], "uid": "u", "generation": self.generation}
            await to.json({**found, "metadata": metadata})


async def test_objects_are_relied_on_once_all_are_listed_after_a_definition_dropped_fields(
    tmp_path: Path,
) -> None:
    """No watch tells that they read otherwise: neither when a field goes nor when it is back."""
    played, time = Defined(), 0.0
    async with (
        fake_api(played.answer) as api,
        client_of(api, tmp_path) as client,
        Watches(client) as watches,
    ):
        objects = PolicyObjects(watches, text_of, clock=lambda: time)
        await objects.wait_synced()
        assert await objects.doubt() == ""
        assert objects.known() is not None
        played.define(drops=True)
        mentions(await objects.doubt(), "lacks spec.rollout", "kubectl apply -f -")
        mentions(await objects.dropped("placementpolicies"), "lacks spec.rollout")
        assert await objects.dropped("capacityclasses") == ""
        assert objects.known() is None
        played.define(drops=False)
        for _ in range(2):
            assert "listed again" in await objects.doubt()
        assert played.lists == 1
        time += DEFINITION_SETTLES
        assert "listed again" in await objects.doubt()
        await until(lambda: played.lists == 2)
        await until(lambda: all(each.lists == 2 for each in watches.states().values()))
        # What the caller has may be from before that list.
        assert "listed again" in await objects.doubt()
        assert await objects.doubt() == ""
        assert objects.known() is not None


async def test_definitions_that_cannot_be_read_are_no_proof_that_objects_are_whole(
    tmp_path: Path,
) -> None:
    """Without the right to read them, the objects serve as before, and that is reported."""
    played = Defined()
    async with (
        fake_api(played.answer) as api,
        client_of(api, tmp_path) as client,
        Watches(client) as watches,
    ):
        objects = PolicyObjects(watches, text_of)
        await objects.wait_synced()
        played.code = 503
        with pytest.raises(ClusterError):
            await objects.doubt()
        assert objects.known() is None
        played.code = 403
        assert await objects.doubt() == await objects.dropped("placementpolicies") == ""
        mentions(objects.unchecked, "not known", "may not get them", "roles of this version")
        played.code = 200
        assert await objects.doubt() == objects.unchecked == ""


async def test_an_api_server_that_does_not_answer_says_nothing_of_definitions(
    tmp_path: Path,
) -> None:
    """That is no sign that they are gone."""

    async def answer(_request: Request, to: Answer) -> None:
        await to.status(503, "ServiceUnavailable", "starting")

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError, match="starting"):
            await PolicyObjects(Watches(client), text_of).undefined()


async def without_exceptions(request: Request, to: Answer, code: int) -> None:
    """A cluster that was installed before there were exceptions, with the rights of that time."""
    if request.path == EXCEPTIONS:
        await to.status(code, "X", "not here")
    elif request.path == GROUP:
        both = [{"name": name, "verbs": ["create"]} for name in ("placementpolicies", "runs")]
        await to.json({"kind": "APIResourceList", "resources": both})
    elif request.is_watch:
        await open_watch(to)
    else:
        await to.json(page(*([seen("p", 1)] if request.path == POLICIES else [])))


@pytest.mark.parametrize("code", [404, 403])
async def test_a_cluster_without_the_definition_of_exceptions_has_none(
    tmp_path: Path, code: int
) -> None:
    """It serves, and says what is missing; whether it may not be listed does not matter."""

    async def answer(request: Request, to: Answer) -> None:
        await without_exceptions(request, to, code)

    async with watching(tmp_path, answer) as (watched, _):
        await watched.wait_synced()
        assert list(watched.objects()) == ["placementpolicies/p"]
        await until(lambda: "so there are none" in watched.trouble())
        cure = "kubectl apply -f manifests/crds/placementexceptions.fairlead.dev.yaml"
        assert cure in watched.trouble()


async def test_who_reads_once_finds_no_exceptions_where_they_are_not_defined(
    tmp_path: Path,
) -> None:
    async def answer(request: Request, to: Answer) -> None:
        await without_exceptions(request, to, 404)

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        result = await read_objects(client)
    assert list(result) == ["placementpolicies/p"]


async def test_exceptions_that_are_defined_and_may_not_be_read_are_waited_for(
    tmp_path: Path,
) -> None:
    """That is no sign that there are none."""

    async def answer(request: Request, to: Answer) -> None:
        if request.path == EXCEPTIONS:
            await to.status(403, "Forbidden", "not you")
        elif request.path == GROUP:
            await to.json({"resources": [{"name": "placementexceptions", "verbs": ["create"]}]})
        else:
            await (open_watch(to) if request.is_watch else to.json(page()))

    async with watching(tmp_path, answer) as (watched, api):
        await until(lambda: "list and watch" in watched.trouble())
        await until(lambda: any(request.path == GROUP for request in api.requests))
        assert not watched.synced
