"""A Run that is over is tried again under another name, and its pods are numbered on."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import FairleadError
from webhook.names import FIRST_ATTEMPT, FIRST_TRY, RETRY_OF
from webhook.run_client.retrying import retry
from webhook.run_client.submit import config_map, with_code

Json = dict[str, Any]
PREFIX = "/namespaces/ml/"
TEMPLATE: Json = {"spec": {"containers": [{"name": "main", "image": "example.invalid/a:1"}]}}
FAILED: Json = {"phase": "Failed", "replicas": {"worker": {"desired": 2, "restarts": 3}}}


def a_run(name: str, status: Json | None = None, **metadata: Any) -> Json:
    spec = {"framework": "pytorch", "replicas": {"worker": {"count": 2}}, "template": TEMPLATE}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}", **metadata},
        "spec": {"backoffLimit": 3, **spec},
        "status": FAILED if status is None else status,
    }


class Store:
    """A namespace of an API server: Runs and ConfigMaps by resource and name.

    between: what another client does just before each Run is created.
    """

    def __init__(self, *runs: Json, config_maps: tuple[Json, ...] = ()) -> None:
        self.objects = {("runs", each["metadata"]["name"]): each for each in runs}
        self.objects |= {("configmaps", each["metadata"]["name"]): each for each in config_maps}
        self.between: Callable[[], None] = lambda: None

    def retry(self, name: str, folder: Path) -> Json:
        async def ask() -> Json:
            async with fake_api(self.answer) as api, client_of(api, folder) as client:
                return await retry(client, "ml", name)

        return asyncio.run(ask())

    def run(self, name: str) -> Json:
        return self.objects["runs", name]

    def ends(self, name: str, status: Json) -> None:
        """The controller writes that the Run is over."""
        self.run(name)["status"] = {"phase": "Failed", **status}

    @property
    def runs(self) -> list[str]:
        return [name for resource, name in self.objects if resource == "runs"]

    async def answer(self, request: Request, answer: Answer) -> None:
        resource, _, name = request.path.partition(PREFIX)[2].partition("/")
        await getattr(self, f"_{request.method.lower()}")(request, answer, resource, name)

    async def _get(self, request: Request, answer: Answer, resource: str, name: str) -> None:
        if name:
            found = self.objects.get((resource, name))
            await (answer.json(found) if found else answer.status(404, "NotFound", "not found"))
            return
        key, _, value = request.query.get("labelSelector", "").partition("=")
        items = [
            each
            for (kind, _), each in self.objects.items()
            if kind == resource and (each["metadata"].get("labels") or {}).get(key) == value
        ]
        await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})

    async def _post(self, request: Request, answer: Answer, resource: str, _: str) -> None:
        if resource == "runs":
            self.between()
        made = json.loads(request.body)
        key = (resource, made["metadata"]["name"])
        if key in self.objects:
            await answer.status(409, "AlreadyExists", f'{resource} "{key[1]}" already exists')
            return
        made["metadata"] |= {"namespace": "ml", "uid": f"uid-{key[1]}"}
        self.objects[key] = made
        await answer.json(made, 201)

    async def _patch(self, request: Request, answer: Answer, resource: str, name: str) -> None:
        spec = self.objects[resource, name]["spec"]
        spec |= json.loads(request.body)["spec"]
        await answer.json(self.objects[resource, name])

    async def _delete(self, _: Request, answer: Answer, resource: str, name: str) -> None:
        await answer.json(self.objects.pop((resource, name)))


def test_a_retry_has_the_spec_and_goes_on_from_the_numbers_before(tmp_path: Path) -> None:
    """It is named after the first try, has its labels, and names the Run before."""
    own = {"team": "vision", names.KUEUE_QUEUE: "ml"}
    tracked = {"argocd.argoproj.io/tracking-id": "x", names.LAST_APPLIED: "{}", "note": "kept"}
    store = Store(a_run("mnist", labels=own, annotations=tracked, finalizers=["a.b/c"]))
    first = store.retry("mnist", tmp_path)
    assert first["spec"] == store.run("mnist")["spec"]
    assert first["metadata"] == {
        "name": "mnist-2",
        "namespace": "ml",
        "uid": "uid-mnist-2",
        "labels": {**own, FIRST_TRY: "mnist"},
        "annotations": {"note": "kept", RETRY_OF: "mnist", FIRST_ATTEMPT: "4"},
    }
    worker = {"firstAttempt": 4, "attempt": 2, "restarts": 1, "recreations": 1}
    store.ends("mnist-2", {"replicas": {"worker": worker, "master": {"firstAttempt": 4}}})
    second = store.retry("mnist-2", tmp_path)
    assert second["metadata"]["name"] == "mnist-3"
    assert second["metadata"]["labels"] == first["metadata"]["labels"]
    wanted = {"note": "kept", RETRY_OF: "mnist-2", FIRST_ATTEMPT: "9"}
    assert second["metadata"]["annotations"] == wanted
    store.ends("mnist-3", {})
    third = store.retry("mnist", tmp_path)
    assert third["metadata"]["name"] == "mnist-4"
    assert third["metadata"]["annotations"] == {**wanted, RETRY_OF: "mnist", FIRST_ATTEMPT: "10"}


def test_a_suspended_run_that_is_over_is_retried_unsuspended(tmp_path: Path) -> None:
    before = a_run("mnist")
    before["spec"]["suspend"] = True
    assert "suspend" not in Store(before).retry("mnist", tmp_path)["spec"]


@pytest.mark.parametrize(
    "spec",
    [
        {"backend": "kubeflow", "framework": "pytorch", "replicas": {"worker": {}}},
        {"kind": "notebook", "ports": [{"port": 8888}]},
    ],
)
def test_pods_without_a_number_get_none(tmp_path: Path, spec: Json) -> None:
    """Those of another engine, and of a notebook."""
    before = {**a_run("mnist"), "spec": {**spec, "template": TEMPLATE}}
    made = Store(before).retry("mnist", tmp_path)
    assert made["metadata"]["annotations"] == {RETRY_OF: "mnist"}
    assert made["spec"] == before["spec"]


@pytest.mark.parametrize(
    ("name", "replicas", "wanted"),
    [
        ("m" * 54, {"worker": {"count": 2}}, "m" * 52 + "-2"),
        ("m" * 51 + "-" + "m" * 2, {"worker": {"count": 2}}, "m" * 51 + "-2"),
        ("m" * 53, {"worker": {"count": 2}}, "m" * 52 + "-2"),
        ("m" * 52, {"worker": {"count": 2}}, "m" * 52 + "-2"),
    ],
)
def test_a_long_name_is_cut(tmp_path: Path, name: str, replicas: Json, wanted: str) -> None:
    """So that the names of its pods are no longer than those of the Run before."""
    before = a_run(name)
    before["spec"]["replicas"] = replicas
    store = Store(before)
    made = store.retry(name, tmp_path)
    assert made["metadata"]["name"] == wanted
    store.ends(wanted, FAILED)
    again = store.retry(wanted, tmp_path)
    assert again["metadata"]["name"] == f"{wanted.removesuffix('-2')}-3"
    assert again["metadata"]["labels"] == {FIRST_TRY: name}


def test_a_name_that_another_run_has_is_passed_over(tmp_path: Path) -> None:
    """Also one whose ConfigMap of code is there."""
    store = Store(a_run("mnist"), a_run("mnist-2", {"phase": "Running"}), a_run("mnist-3"))
    assert store.retry("mnist", tmp_path)["metadata"]["name"] == "mnist-4"
    taken = Store(*(a_run(f"mnist{end}") for end in ("", *(f"-{n}" for n in range(2, 30)))))
    with pytest.raises(FairleadError) as caught:
        taken.retry("mnist", tmp_path)
    mentions(str(caught.value), "run mnist", "mnist-2 to mnist-21", "delete")


def test_of_two_that_retry_at_one_time_one_does(tmp_path: Path) -> None:
    """The other finds the new Run, and does not make a second one."""
    store = Store(a_run("mnist"))
    other = a_run("mnist-2", {}, labels={FIRST_TRY: "mnist"})
    store.between = lambda: store.objects.update({("runs", "mnist-2"): other})
    with pytest.raises(FairleadError) as caught:
        store.retry("mnist", tmp_path)
    mentions(str(caught.value), "mnist-2", "not over")
    assert store.runs == ["mnist", "mnist-2"]


LIVING: dict[str, tuple[Json, ...]] = {
    "running": (a_run("mnist", {"phase": "Running", "message": "2 of 2 replicas run"}),),
    "new": (a_run("mnist", {}),),
    "queued": (a_run("mnist", {"phase": "Suspended", "message": "waits in queue ml"}),),
    "suspended": (
        {**a_run("mnist", {"phase": "Suspended"}), "spec": {"suspend": True, "template": TEMPLATE}},
    ),
    "being deleted": (
        a_run("mnist", {"phase": "Running"}, deletionTimestamp="2026-11-30T00:00:00Z"),
    ),
    "another try": (
        a_run("mnist"),
        a_run("mnist-2", {"phase": "Running"}, labels={FIRST_TRY: "mnist"}),
    ),
}


@pytest.mark.parametrize("case", LIVING)
def test_a_run_that_lives_is_not_retried(tmp_path: Path, case: str, wording: Wording) -> None:
    """Two of them would write the same checkpoints; the message has the cure."""
    store = Store(*LIVING[case])
    with pytest.raises(FairleadError) as caught:
        store.retry("mnist", tmp_path)
    mentions(str(caught.value), "run mnist", "not over", "-n ml")
    wording(str(caught.value))
    assert len(store.runs) == len(LIVING[case])


CODE = {"train.py": b"print()", "lib/a b.py": b"\xff\x00"}


def with_its_code(name: str, **about: Any) -> tuple[Json, Json]:
    run = with_code(a_run(name), CODE)
    held = config_map(run, CODE)
    held["metadata"] |= about
    return run, held


def test_code_is_copied_because_it_goes_with_the_run_before(tmp_path: Path) -> None:
    """The new Run owns its copy and mounts it; one that nobody owns is mounted by both."""
    run, held = with_its_code("mnist")
    store = Store(run, config_maps=(held,))
    made = store.retry("mnist", tmp_path)
    copied = store.objects["configmaps", "mnist-2-code"]
    assert copied["binaryData"] == held["binaryData"]
    (owner,) = copied["metadata"]["ownerReferences"]
    assert (owner["name"], owner["uid"]) == ("mnist-2", "uid-mnist-2")
    (volume,) = made["spec"]["template"]["spec"]["volumes"]
    (before,) = run["spec"]["template"]["spec"]["volumes"]
    assert volume == {**before, "configMap": {**before["configMap"], "name": "mnist-2-code"}}
    assert made["spec"]["suspend"] is None
    assert base64.b64decode(copied["binaryData"]["file-1"]) == CODE["lib/a b.py"]

    run, held = with_its_code("mnist", ownerReferences=[])
    store = Store(run, config_maps=(held,))
    assert store.retry("mnist", tmp_path)["spec"] == run["spec"]
    assert ("configmaps", "mnist-2-code") not in store.objects


@pytest.mark.parametrize("left", [None, {}, {"file-0": "eA=="}])
def test_a_run_whose_code_is_gone_is_not_retried(tmp_path: Path, left: Json | None) -> None:
    """Its pods would wait for it for ever."""
    run, held = with_its_code("mnist")
    store = Store(run, config_maps=() if left is None else ({**held, "binaryData": left},))
    with pytest.raises(FairleadError) as caught:
        store.retry("mnist", tmp_path)
    mentions(str(caught.value), "run mnist", "mnist-code", "run create --code")
    assert store.runs == ["mnist"]


def test_a_run_that_can_have_no_pods_is_not_made_again(tmp_path: Path) -> None:
    """All problems are said."""
    before = a_run("mnist")
    before["spec"]["replicas"] = {"leader": {}, "workre": {}}
    with pytest.raises(FairleadError) as caught:
        Store(before).retry("mnist", tmp_path)
    mentions(str(caught.value), "leader", "workre", "pytorch")
