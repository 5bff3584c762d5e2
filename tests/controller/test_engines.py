"""The watches of other engines: only of kinds that Runs use; pods by their owners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.controller.runs import Api, Json, owner_reference, raw_run, refused, run
from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from tests.wording import mentions
from webhook import names
from webhook.controller.delegation import Delegation, engine_refusal
from webhook.controller.engine_pods import MOST_GONE, read_pod
from webhook.controller.engines import SERVED_PAUSE, Engines, Watched
from webhook.controller.observed_state import ObservedState
from webhook.controller.owned_objects import Objects
from webhook.controller.refusals import Refusals
from webhook.controller.stored_run import StoredRun, store
from webhook.errors import ClusterError
from webhook.kube.cache import Cache
from webhook.kube.watches import Watches
from webhook.run.actions import SuspendEngineObject
from webhook.run.backends.engines import ENGINES
from webhook.run.failure import Failure, classify_end
from webhook.times import to_second

NOW: Final = datetime(2026, 11, 24, 9, tzinfo=UTC)
PYTORCH = "kubeflow/pytorch"
LABELS = ENGINES[PYTORCH].pods


def delegated(name: str, framework: str = "pytorch") -> Json:
    """A raw Run for the training operator."""
    return raw_run(name=name, backend="kubeflow", framework=framework)


def engine_object(run_uid: str = "uid-mnist") -> Json:
    """A PyTorchJob of the Run."""
    owner = owner_reference(run_uid)
    return {
        "metadata": {
            "name": "mnist",
            "namespace": "lab",
            "uid": "uid-job",
            "resourceVersion": "7",
            "ownerReferences": [owner],
        },
        "spec": {"runPolicy": {"suspend": True}},
        "status": {"conditions": [{"type": "Created", "status": "True"}]},
    }


def engine_pod(name: str, uid: str = "", owner: str = "uid-job", **status: Any) -> Json:
    """A worker of that PyTorchJob."""
    reference = {"kind": "PyTorchJob", "name": "mnist", "uid": owner, "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": uid or f"uid-{name}",
            "labels": {LABELS.label: "mnist", LABELS.role: "worker", LABELS.index: "1"},
            "ownerReferences": [reference],
        },
        "spec": {"containers": [{"name": "log"}, {"name": "pytorch"}]},
        "status": {"phase": "Running", **status},
    }


class Stage:
    """The informers in a loop, without an API server behind them."""

    def __init__(self) -> None:
        self.runs: Cache[StoredRun] = Cache(store)
        self.told: list[str] = []
        self.engines = Engines(Watches(Api().client), self.runs, "", self.told.append)

    def put(self, raw: Json | None, key: str = "lab/mnist") -> None:
        """A Run is there, or gone."""
        self.runs.put(key, self.runs.keep(raw) if raw else None)

    def delegation(self, api: Api) -> Delegation:
        """What reads and writes objects, by these informers and this API server."""
        known = ObservedState()
        objects = Objects(api.client, api.writer, known)
        return Delegation(api.client, api.writer, self.engines, known.nodes, objects, Refusals())

    async def settle(self) -> None:
        """Let the informers start and stop."""
        for _ in range(3):
            await asyncio.sleep(0)


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    """A stage whose informers run."""
    stage = Stage()
    task = asyncio.create_task(stage.engines.run())
    try:
        await stage.settle()
        yield stage
    finally:
        task.cancel()


async def test_a_kind_is_watched_while_a_run_uses_it() -> None:
    """None without; the pods of one operator once for all its kinds."""
    async with staged() as stage:
        assert stage.engines.collections == ()
        stage.put(raw_run())
        await stage.settle()
        assert stage.engines.collections == ()
        stage.put(delegated("a"), "lab/a")
        stage.put(delegated("b"), "lab/b")
        stage.put(delegated("c", "jax"), "lab/c")
        await stage.settle()
        assert set(stage.engines.collections) == {"pytorchjobs", "jaxjobs", LABELS.selector}
        stage.put(None, "lab/a")
        stage.put(None, "lab/c")
        await stage.settle()
        assert set(stage.engines.collections) == {"pytorchjobs", LABELS.selector}
        stage.put(None, "lab/b")
        await stage.settle()
        assert stage.engines.collections == ()


async def test_an_object_without_a_name_ends_no_watch_of_its_kind(tmp_path: Path) -> None:
    """Runs of the kind are followed, the process shows what is left out; the last Run ends all."""
    nameless = engine_object("uid-other")
    del nameless["metadata"]["name"]

    async def handle(request: Request, to: Answer) -> None:
        jobs = request.path.endswith("/pytorchjobs")
        if not request.is_watch:
            await to.json({"metadata": {"resourceVersion": "6"}, "items": [nameless] * jobs})
            return
        await to.begin()
        if jobs:
            await to.event("MODIFIED", nameless)
            await to.event("ADDED", engine_object())
        await asyncio.Event().wait()

    runs: Cache[StoredRun] = Cache(store)
    async with (
        fake_api(handle) as api,
        client_of(api, tmp_path) as client,
        Watches(client) as watches,
    ):
        engines = Engines(watches, runs, "", lambda _: None)
        task = asyncio.create_task(engines.run())
        runs.put("lab/mnist", runs.keep(delegated("mnist")))
        await until(lambda: (found := engines.watched(PYTORCH)) is not None and found.synced)
        watched = engines.watched(PYTORCH)
        assert watched is not None
        await until(lambda: watched.find("lab", "uid-mnist") is not None)
        assert watches.troubles() == ("pytorchjobs: lab/? is left out: it has no name",)
        assert watches.states()["pytorchjobs"].errors == 0
        runs.put("lab/mnist", None)
        await until(lambda: len(watches) == 0)
        task.cancel()


async def watched_kind(stage: Stage) -> Watched:
    """The kind of a run that is there."""
    stage.put(delegated("mnist"))
    await stage.settle()
    watched = stage.engines.watched(PYTORCH)
    assert watched is not None
    return watched


async def watched_with_pod(stage: Stage) -> Watched:
    watched = await watched_kind(stage)
    watched.objects.replace({"lab/mnist": ENGINES[PYTORCH].read(engine_object())}, "7")
    put_pod(watched, engine_pod("mnist-worker-1"))
    return watched


def put_pod(watched: Watched, raw: Json) -> None:
    """The watch delivers a pod."""
    cache = watched.pods.cache
    cache.put(f"lab/{raw['metadata']['name']}", cache.keep(raw))


async def test_pods_are_those_that_the_object_owns_whatever_their_labels_are() -> None:
    """A pod of another owner with all labels of the run is not one of its pods."""
    async with staged() as stage:
        watched = await watched_with_pod(stage)
        put_pod(watched, engine_pod("forged", owner="uid-foreign"))
        orphan = engine_pod("orphan")
        del orphan["metadata"]["ownerReferences"]
        put_pod(watched, orphan)
        found = watched.pods.of("lab", "uid-job")
        assert [pod.name for pod in found] == ["mnist-worker-1"]
        assert watched.pods.of("elsewhere", "uid-job") == ()
        assert stage.told
        assert set(stage.told) == {"uid-mnist"}


async def test_a_change_of_a_node_concerns_the_runs_with_pods_on_it() -> None:
    """A silent node changes no pod for minutes."""
    async with staged() as stage:
        watched = await watched_with_pod(stage)
        bound = engine_pod("mnist-worker-1")
        bound["spec"]["nodeName"] = "spot-1"
        put_pod(watched, bound)
        stage.told.clear()
        stage.engines.node_changed("spot-2")
        assert stage.told == []
        stage.engines.node_changed("spot-1")
        assert stage.told == ["uid-mnist"]


async def test_a_deleted_pod_is_remembered_until_it_is_counted() -> None:
    """As it was last seen, which may be after its failure; also if its name is taken at once."""
    async with staged() as stage:
        watched = await watched_with_pod(stage)
        put_pod(watched, engine_pod("mnist-worker-1", phase="Failed"))
        put_pod(watched, engine_pod("mnist-worker-1", uid="next"))
        (gone,) = watched.pods.gone("uid-job")
        assert (gone.uid, gone.phase) == ("uid-mnist-worker-1", "Failed")
        watched.pods.forget("uid-job", ["uid-mnist-worker-1"])
        assert watched.pods.gone("uid-job") == ()
        for number in range(MOST_GONE + 5):
            put_pod(watched, engine_pod("mnist-worker-1", uid=f"uid-{number}"))
        assert len(watched.pods.gone("uid-job")) == MOST_GONE
        watched.objects.put("lab/mnist", None)
        assert watched.pods.gone("uid-job") == ()


SECOND = "2026-08-01T12:00:05Z"


def ending_pod(grace: int | None = None) -> Json:
    """A worker that failed, with its deletion in the same second if there is a grace period."""
    state = {"terminated": {"exitCode": 130, "reason": "Error", "finishedAt": SECOND}}
    pod = engine_pod(
        "mnist-worker-1", phase="Failed", containerStatuses=[{"name": "pytorch", "state": state}]
    )
    if grace is not None:
        deleted = {"deletionTimestamp": SECOND, "deletionGracePeriodSeconds": grace}
        pod["metadata"] |= deleted
    return pod


def deleted_while_running() -> Json:
    """The worker runs, and its deletion with a grace period of 30 s is requested."""
    pod = ending_pod()
    pod["metadata"] |= {
        "deletionTimestamp": "2026-08-01T12:00:35Z",
        "deletionGracePeriodSeconds": 30,
    }
    pod["status"] = {"phase": "Running"}
    return pod


@pytest.mark.parametrize(
    ("seen", "end"),
    [
        ([ending_pod(), ending_pod(0)], "SIGINT"),
        ([ending_pod(0)], "SIGINT"),
        ([deleted_while_running(), ending_pod(0)], "Deleted"),
        ([deleted_while_running()], "Deleted"),
    ],
)
async def test_a_pod_that_its_engine_deletes_after_it_failed_is_a_failure(
    seen: list[Json], end: str
) -> None:
    """Both may be in one second: what the watch delivers first decides."""
    async with staged() as stage:
        watched = await watched_with_pod(stage)
        for raw in seen:
            put_pod(watched, raw)
        live = read_pod(LABELS, seen[-1])
        assert live is not None
        found = [
            *watched.pods.of("lab", "uid-job"),
            watched.pods.judge_live("lab", live, "uid-job", {}),
        ]
        watched.pods.cache.put("lab/mnist-worker-1", None)
        for pod in (*found, *watched.pods.gone("uid-job")):
            failure = classify_end(pod)
            assert isinstance(failure, Failure)
            assert failure.reason == end


async def test_events_are_read_while_pods_are_missing_and_not_with_each_change() -> None:
    """The API server reads Events from etcd; without the right to list them there are none."""
    async with staged() as stage:
        watched = await watched_kind(stage)
        raw = engine_object()
        raw["metadata"]["creationTimestamp"] = to_second(NOW)
        raw["spec"] = {}
        watched.objects.replace({"lab/mnist": ENGINES[PYTORCH].read(raw)}, "7")
        watched.pods.cache.replace({}, "7")
        event = {"type": "Warning", "reason": "FailedCreatePod", "message": "exceeded quota: q"}
        api = Api()
        api.answers["list", "events"] = {"items": [{**event, "lastTimestamp": to_second(NOW)}]}
        delegation = stage.delegation(api)
        found = run(backend="kubeflow", framework="pytorch", replicas={"master": {}})

        async def reason_after(seconds: float) -> str:
            now = NOW + timedelta(seconds=seconds)
            decided = await delegation.decide(found, PYTORCH, ENGINES[PYTORCH], now)
            assert decided is not None
            return next(each.reason for each in decided[1].status.conditions)

        assert await reason_after(1) == "Creating"
        assert api.named("list") == []
        for seconds in (2, 2.5, 3.9):
            assert await reason_after(seconds) == "QuotaExceeded"
        assert api.named("list") == ["events"]
        assert await reason_after(4.1) == "QuotaExceeded"
        assert api.named("list") == ["events"] * 2
        api.answers["list", "events"] = refused(403, "Forbidden")
        assert await reason_after(9) == "Creating"


async def test_a_suspension_is_known_before_the_watch_delivers_it() -> None:
    """Else the next look would take another client for the one that resumed it."""
    async with staged() as stage:
        watched = await watched_kind(stage)
        raw = {**engine_object(), "spec": {}}
        watched.objects.replace({"lab/mnist": ENGINES[PYTORCH].read(raw)}, "7")
        api = Api()
        answer = engine_object()
        answer["metadata"]["resourceVersion"] = "8"
        api.answers["patch", "mnist"] = answer
        delegation = stage.delegation(api)
        found = run(backend="kubeflow", framework="pytorch", replicas={"master": {}})
        actions = [SuspendEngineObject("uid-job", suspend=True)]
        done = await delegation.carry_out(found, PYTORCH, ENGINES[PYTORCH], actions)
        assert done.error is None
        there = watched.find("lab", "uid-mnist")
        assert there is not None
        assert there.suspended


_AWAY: Final = 'failed calling webhook "vjobset.kb.io": connection refused'
_DENIED: Final = "metadata.uid: Invalid value: field is immutable"


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (refused(500, "InternalError", _AWAY), "PyTorchJob mnist is not suspended: "),
        (refused(403, "Forbidden", "cannot patch pytorchjobs"), "--backend kubeflow"),
        (refused(422, "Invalid", "spec: Required value"), "Required value; it is tried again"),
        (refused(422, "Invalid", _DENIED), None),
        (refused(404), None),
        (refused(409, "Conflict"), ""),
    ],
)
async def test_a_write_that_failed_says_which_and_why(
    answer: ClusterError, failed: str | None
) -> None:
    """None: the object is another one, or gone. Empty: a retry resolves it."""
    async with staged() as stage:
        api = Api()
        api.answers["patch", "mnist"] = answer
        delegation = stage.delegation(api)
        found = run(backend="kubeflow", framework="pytorch", replicas={"master": {}})
        actions = [SuspendEngineObject("uid-job", suspend=True)]
        done = await delegation.carry_out(found, PYTORCH, ENGINES[PYTORCH], actions)
        if failed is None:
            assert done.error is None
        else:
            assert done.error is answer
            assert failed in done.failed
            assert bool(failed) == bool(done.failed)


@pytest.mark.parametrize(
    ("owner", "active", "patched"),
    [("uid-job", True, ["w"]), ("uid-job", False, []), ("uid-other", True, ["mnist"])],
)
async def test_an_object_in_a_queue_is_suspended_by_its_workload(
    owner: str, active: bool, patched: list[str]
) -> None:
    """Whose label may be forged; one that is not active is left. Without one, the object is."""
    async with staged() as stage:
        api = Api()
        api.answers["patch", "mnist"] = engine_object()
        api.answers["patch", "w"] = {}
        reference = {"kind": "PyTorchJob", "name": "mnist", "uid": owner, "controller": True}
        labels = {names.KUEUE_JOB_UID: "uid-job"}
        metadata = {"name": "w", "namespace": "lab", "uid": "uid-w", "labels": labels}
        workload = {
            "metadata": {**metadata, "ownerReferences": [reference]},
            "spec": {"active": active},
        }
        api.answers["list", "workloads"] = {"items": [workload]}
        delegation = stage.delegation(api)
        found = run(backend="kubeflow", framework="pytorch", replicas={"master": {}})
        actions = [SuspendEngineObject("uid-job", suspend=True, queued=True)]
        done = await delegation.carry_out(found, PYTORCH, ENGINES[PYTORCH], actions)
        assert (api.named("patch"), done.error) == (patched, None)
        assert done.acted == bool(patched)
        if patched == ["w"]:
            assert api.bodies[-1] == {"metadata": {"uid": "uid-w"}, "spec": {"active": False}}
        api.answers["list", "workloads"] = refused(403, "Forbidden", "cannot list workloads")
        done = await delegation.carry_out(found, PYTORCH, ENGINES[PYTORCH], actions)
        mentions(done.failed, "PyTorchJob mnist is not suspended", "--backend kueue")


def test_the_main_container_is_the_operator_s() -> None:
    """Its restarts count, with how it ended before; those of a sidecar do not."""
    ended = {"terminated": {"exitCode": 3, "reason": "Error", "message": "no data"}}
    statuses = [
        {"name": "log", "restartCount": 9},
        {"name": "pytorch", "restartCount": 2, "lastState": ended},
    ]
    pod = read_pod(LABELS, engine_pod("mnist-worker-1", containerStatuses=statuses))
    assert pod is not None
    assert (pod.role, pod.index, pod.restarts) == ("worker", 1, 2)
    assert pod.previous is not None
    assert (pod.previous.code, pod.previous.message) == (3, "no data")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (refused(404), "BackendMissing"),
        (refused(404, words="the server could not find the requested resource"), "BackendMissing"),
        (refused(404, "NotFound", 'namespaces "lab" not found'), "Rejected"),
        (refused(400, "BadRequest", "strict decoding error: unknown field"), "Rejected"),
        (refused(422, "Invalid", "spec: Required value"), "Rejected"),
        (refused(403, "Forbidden", "exceeded quota: jobs"), "QuotaExceeded"),
        (refused(403, "Forbidden", "cannot create pytorchjobs"), "Forbidden"),
        (refused(503), None),
        (refused(429), None),
    ],
)
def test_a_refused_object_has_a_reason(error: ClusterError, reason: str | None) -> None:
    """A failure of the API server has none: it is tried again."""
    found = engine_refusal(run(), ENGINES[PYTORCH], error)
    assert (found.reason if found else None) == reason


MPI = "kubeflow/mpi"


def serving(*versions: str) -> Api:
    """An API server that serves MPIJobs in these versions."""
    api = Api()
    for version in ("v1", "v2beta1"):
        kinds = [{"name": "mpijobs"}] if version in versions else [{"name": "tfjobs"}]
        answer = {"resources": kinds} if version != "v2beta1" or versions else refused(404)
        api.answers["get", version] = answer
    return api


@pytest.mark.parametrize(
    ("versions", "version"),
    [(("v1",), "v1"), (("v2beta1",), "v2beta1"), (("v1", "v2beta1"), "v2beta1"), ((), "v2beta1")],
)
async def test_the_version_of_mpijob_is_the_one_that_the_cluster_serves(
    versions: tuple[str, ...], version: str
) -> None:
    """The watches follow; without any the newest is asked for, and its absence reported."""
    api = serving(*versions)
    now = [1.0]
    runs: Cache[StoredRun] = Cache(store)
    engines = Engines(Watches(api.client), runs, "", lambda _: None, clock=lambda: now[0])
    task = asyncio.create_task(engines.run())
    await asyncio.sleep(0)
    raw = raw_run(name="mnist", backend="kubeflow", framework="mpi")
    runs.put("lab/mnist", runs.keep(raw))
    for _ in range(3):
        await asyncio.sleep(0)
    chosen = await engines.choose(MPI)
    assert chosen.api_version == f"kubeflow.org/{version}"
    watched = engines.watched(MPI)
    assert watched is not None
    assert watched.engine == chosen
    asked = len(api.named("get"))
    await engines.choose(MPI)
    assert len(api.named("get")) == asked
    now[0] += SERVED_PAUSE
    await engines.choose(MPI)
    assert len(api.named("get")) > asked
    assert await engines.choose(PYTORCH) == ENGINES[PYTORCH]
    task.cancel()


async def test_an_api_server_that_does_not_say_what_it_serves_is_asked_again() -> None:
    """No version is guessed."""
    api = Api()
    api.answers["get", "v2beta1"] = refused(503)
    engines = Engines(Watches(api.client), Cache(store), "", lambda _: None)
    with pytest.raises(ClusterError):
        await engines.choose(MPI)
