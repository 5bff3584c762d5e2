"""Writes of policies and classes: what the API server is answered."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, cast

import orjson
import pytest

from tests.admission.reviews import Answer, Json, call
from tests.admission.test_app import logged
from tests.eventually import eventually_async
from tests.wording import Wording, mentions
from webhook import names
from webhook.admission.app import admission_app
from webhook.admission.policy_handler import MOST_JUDGED, SPARE, PolicyHandler
from webhook.cluster_objects.policy_objects import text_of
from webhook.errors import ClusterError
from webhook.judgement.set_judgement import MOST_BYTES
from webhook.judgement.write_judge import Judge
from webhook.placement.nodes import Node
from webhook.server.webhook_metrics import Metrics
from webhook.validating import POLICIES_PATH


def stored(kind: str, name: str, **spec: Any) -> Json:
    return {
        "apiVersion": names.API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "uid": "u", "generation": 1, "managedFields": []},
        "spec": spec,
    }


SPOT = stored("CapacityClass", "spot", nodes=[{"labels": {"lifecycle": "spot"}}])
ON_DEMAND = stored("CapacityClass", "on-demand", complementOf="spot")


def setting(name: str = "setting", of: str = "spot", **spec: Any) -> Json:
    """A policy that constrains pods to a class."""
    overrides = {"capacity": [{"class": of, "mode": "Constrain"}]}
    return stored("PlacementPolicy", name, **({"overrides": overrides} | spec))


def texts(*objects: Json) -> dict[str, bytes]:
    result = {}
    for each in objects:
        resource = names.POLICY_RESOURCES[each["kind"]]
        result[f"{resource}/{each['metadata']['name']}"] = text_of(resource, each)
    return result


def review(new: Json | None, old: Json | None = None, **request: object) -> Json:
    seen = new or old or {}
    operation = "CREATE" if old is None else "UPDATE" if new is not None else "DELETE"
    resource = names.POLICY_RESOURCES.get(str(seen.get("kind")), "placementpolicies")
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0df28fbd",
            "resource": {"group": names.GROUP, "version": "v1alpha1", "resource": resource},
            "name": "",
            "operation": operation,
            "userInfo": {"username": "admin"},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            **request,
        },
    }


class World:
    """What the watch knows, and what there is; `live` may be an error instead."""

    def __init__(
        self, *objects: Json, live: tuple[Json, ...] | Exception | None = None, watched: bool = True
    ) -> None:
        self._known = texts(*objects)
        self._live = objects if live is None else live
        self._watched = watched
        self.reads = 0
        # Cleared, a read takes until it is set.
        self.readable = asyncio.Event()
        self.readable.set()
        self.nodes: list[Node] | None = None
        # What the API server drops of a kind, or an error.
        self.drops: Mapping[str, str] | Exception = {}
        self.metrics = Metrics()

    def known(self) -> Mapping[str, bytes] | None:
        return self._known if self._watched else None

    async def dropped(self, resource: str) -> str:
        if isinstance(self.drops, Exception):
            raise self.drops
        return self.drops.get(resource, "")

    async def live(self) -> Mapping[str, bytes]:
        self.reads += 1
        await self.readable.wait()
        if isinstance(self._live, TimeoutError):
            await asyncio.sleep(3600)
        if isinstance(self._live, Exception):
            raise self._live
        return texts(*self._live)

    def handler(self, *, patience: float = 0.05, read_pause: float = 0.0) -> PolicyHandler:
        return PolicyHandler(
            resources=tuple(names.POLICY_RESOURCES.values()),
            objects=cast(Any, self),
            judge=Judge(),
            observer=self.metrics,
            nodes=lambda: self.nodes,
            patience=patience,
            read_pause=read_pause,
        )

    def now(self, *objects: Json) -> None:
        self._live = objects

    def post(self, body: Json | bytes) -> Answer:
        app = admission_app({POLICIES_PATH: self.handler().handle}, self.metrics)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"content-type": "application/json"}
        answer = call(app, "POST", POLICIES_PATH, [content], given)
        assert answer is not None
        return answer

    def counted(self, outcome: str) -> float:
        labels = {"outcome": outcome}
        name = "fairlead_policy_writes_judged_total"
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


def test_a_good_write_is_allowed_without_a_read() -> None:
    """By what the watch knows, and without a patch."""
    world = World(SPOT)
    answer = world.post(review(setting()))
    assert answer.status == 200
    assert answer.response == {"uid": "0df28fbd", "allowed": True}
    assert world.reads == 0
    assert world.counted("allowed") == 1


def test_a_write_that_breaks_the_set_is_refused_with_the_cure(wording: Wording) -> None:
    """As kubectl will print it, and with a status that it knows."""
    world = World(SPOT, ON_DEMAND)
    response = world.post(review(setting(of="spt"))).response
    assert response["allowed"] is False
    assert response["status"]["code"] == 403
    message = response["status"]["message"]
    mentions(message, "fairlead: spec.overrides.capacity[0].class:", "'spt'", "on-demand, spot")
    assert message.endswith("did you mean 'spot'?")
    wording(message)
    assert world.counted("refused") == 1


def test_all_errors_are_reported_at_once(wording: Wording) -> None:
    settings = [{"class": each, "mode": "Prefer"} for each in ("x1", "y2")]
    response = World().post(review(setting(overrides={"capacity": settings}))).response
    head, *errors = response["status"]["message"].splitlines()
    assert head == "fairlead: 2 errors:"
    for at, (error, name) in enumerate(zip(errors, ("x1", "y2"), strict=True)):
        assert error.startswith(f"- spec.overrides.capacity[{at}].class: ")
        mentions(error, f"capacity class '{name}'", "create the class")
    wording(response["status"]["message"])


def test_what_was_written_just_before_is_read_live_before_a_refusal() -> None:
    """The watch of this replica may not have told of the class yet, nor of a policy's end."""
    late = World(live=(SPOT,))
    assert late.post(review(setting())).response["allowed"] is True
    assert late.reads == 1
    gone = World(SPOT, setting(), live=(SPOT,))
    assert gone.post(review(None, SPOT)).response["allowed"] is True


def test_without_a_watch_all_is_read() -> None:
    """A replica that has just come, or hears nothing, judges as well."""
    world = World(SPOT, watched=False)
    assert world.post(review(setting())).response["allowed"] is True
    assert world.post(review(None, SPOT)).response["allowed"] is True
    assert world.reads == 2


@pytest.mark.parametrize(
    ("live", "why"), [(ClusterError("no route"), "no route"), (TimeoutError(), "within 0.05 s")]
)
def test_an_unreadable_review_gets_no_decision(live: Exception, why: str) -> None:
    """503, with which the API server tries again, and not a refusal that may be wrong."""
    world = World(live=live)
    answer = world.post(review(setting()))
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert why in answer.body.decode()
    assert world.counted("unjudged") == 1


def test_a_right_that_is_missing_is_told_at_once() -> None:
    """Another attempt would end as this one, and the author would hear of a time-out only."""
    for world in (
        World(live=ClusterError("403: may not list", status=403)),
        World(SPOT),
    ):
        world.drops = ClusterError("403: may not list", status=403)
        answer = world.post(review(setting()))
        assert answer.status == 200
        assert answer.response["allowed"] is False
        mentions(answer.response["status"]["message"], "cannot be judged", "403: may not list")
        assert world.counted("unjudged") == 1


def forged(number: int, user: str = "admin") -> bytes:
    """A write that has to be read live: its class is not known."""
    new = setting(f"forged-{number}", of="none")
    return json.dumps(review(new, userInfo={"username": user})).encode()


async def test_all_that_ask_while_a_read_goes_on_share_the_next() -> None:
    """The first read began before they asked, and may lack what was written just before."""
    world = World()
    world.readable.clear()
    handler = world.handler(patience=60)
    posts = [asyncio.create_task(handler.handle(forged(0)))]
    await eventually_async("the first read goes on", lambda: world.reads == 1)
    posts += [asyncio.create_task(handler.handle(forged(number))) for number in range(1, 7)]
    posts.append(asyncio.create_task(handler.handle(json.dumps(review(setting())).encode())))
    # So that all of them have been judged by the watch, and ask.
    await eventually_async("all ask", lambda: handler.waiting == 8)
    world.now(SPOT)
    world.readable.set()
    *refused, allowed = await asyncio.gather(*posts)
    assert world.reads == 2
    assert all(orjson.loads(each.body)["response"]["allowed"] is False for each in refused)
    assert orjson.loads(allowed.body)["response"]["allowed"] is True


async def test_reads_have_a_pace() -> None:
    """However many writes are forged: here, one read an hour."""
    world = World()
    handler = world.handler(read_pause=3600)
    assert [(await handler.handle(forged(number))).status for number in range(3)] == [200, 503, 503]
    assert world.reads == 1


async def test_a_write_beyond_the_limit_is_told_to_retry() -> None:
    """At once; those of whom no write is judged have places left; who needs none passes."""
    world = World()
    world.readable.clear()
    handler = world.handler(patience=60)
    posts = [asyncio.create_task(handler.handle(forged(number))) for number in range(MOST_JUDGED)]
    await eventually_async("all ask", lambda: handler.waiting == MOST_JUDGED)
    beyond = await handler.handle(forged(99))
    posts += [
        asyncio.create_task(handler.handle(forged(0, f"other-{number}"))) for number in range(SPARE)
    ]
    await eventually_async("others ask", lambda: handler.waiting == MOST_JUDGED + SPARE)
    assert (await handler.handle(forged(0, "one-more"))).status == 503
    going = {**SPOT, "metadata": {**SPOT["metadata"], "deletionTimestamp": "2026-01-01T00:00Z"}}
    same = await handler.handle(json.dumps(review(going, SPOT)).encode())
    world.readable.set()
    assert {each.status for each in await asyncio.gather(*posts)} == {200}
    assert (await handler.handle(forged(100))).status == 200
    assert (beyond.status, beyond.retry) == (503, True)
    assert same.status == 200


def test_an_object_that_is_too_large_is_refused_unread(wording: Wording) -> None:
    """Its findings would take a thousand times its bytes; one that is stored can be deleted."""
    large = setting(match={"namespaces": ["n" * 60] * 2_000})
    world = World(SPOT)
    response = world.post(review(large)).response
    assert response["allowed"] is False
    mentions(response["status"]["message"], f"at most {MOST_BYTES} are allowed")
    wording(response["status"]["message"])
    assert world.post(review(None, large)).response["allowed"] is True
    assert world.post(review(setting(), large)).response["allowed"] is True
    labelled = {**large, "metadata": {**large["metadata"], "labels": {"a": "b"}}}
    assert world.post(review(labelled, large)).response["allowed"] is True
    other = {**large, "spec": {**large["spec"], "priority": 1}}
    assert world.post(review(other, large)).response["allowed"] is False


def test_a_write_that_says_nothing_new_passes_whatever_there_is() -> None:
    """Labels, finalizers, a deletion that has begun: nobody has to be able to read the rest."""
    world = World(live=ClusterError("no route"), watched=False)
    wrong = setting(of="spt")
    ending = {**wrong, "metadata": {**wrong["metadata"], "deletionTimestamp": "now", "labels": {}}}
    assert world.post(review(ending, wrong)).response == {"uid": "0df28fbd", "allowed": True}


def test_nothing_is_stored_by_a_definition_that_drops_fields() -> None:
    """Neither a change nor a label; what goes may go, and other kinds are as they are."""
    world = World(SPOT, setting())
    world.drops = {"placementpolicies": "the definition lacks spec.rollout"}
    labelled = {**setting(), "metadata": {"name": "setting", "labels": {"a": "b"}}}
    for new in (setting("spot", "other"), labelled):
        answer = world.post(review(new, setting() if new is labelled else None))
        assert not answer.response["allowed"]
        mentions(answer.response["status"]["message"], "lacks spec.rollout")
    going = {**labelled, "metadata": {"name": "setting", "deletionTimestamp": "2026-01-01T00:00Z"}}
    for allowed in (review(going, setting()), review(None, setting()), review(SPOT, SPOT)):
        assert world.post(allowed).response["allowed"]
    world.drops = ClusterError("no route")
    assert world.post(review(labelled, setting())).status == 503


def test_warnings_come_with_the_answer_and_are_counted(wording: Wording) -> None:
    """A class without nodes, of which only the cluster can tell."""
    world = World(SPOT)
    world.nodes = [Node("n1", {}, ())]
    response = world.post(review(setting())).response
    assert response["allowed"] is True
    (warning,) = response["warnings"]
    mentions(
        warning, "fairlead: policy 'setting': spec.overrides.capacity[0]:", "1 nodes", "class spot"
    )
    wording(warning)
    assert world.counted("warned") == 1


def test_too_many_warnings_are_cut_before_the_api_server_does(wording: Wording) -> None:
    labels = {f"{at:03}.example/{'x' * 50}": "a" for at in range(60)}
    first = stored("PlacementPolicy", "a", overrides={"labels": labels})
    second = stored("PlacementPolicy", "b", defaults={"labels": dict.fromkeys(labels, "b")})
    warnings = World(first).post(review(second)).response["warnings"]
    assert sum(map(len, warnings)) <= 4096
    mentions(warnings[-1], f"{60 - len(warnings) + 1} more warnings", "`fairlead check`")
    wording(warnings[-1])


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"{", "not JSON"),
        (review(setting(), operation="CONNECT"), "CREATE, UPDATE or DELETE"),
        (review(setting(), resource={"group": "", "resource": "pods"}), "request.resource: want"),
        (review(setting(), subResource="status"), "subResource"),
        (review(setting(), object=None), "request.object: "),
        (review(setting(), object={"metadata": {}}), "metadata.name: "),
        (review(None, SPOT, oldObject=None), "request.oldObject"),
        (review(setting(), userInfo=None), "request.userInfo"),
    ],
)
def test_another_kind_of_review_gets_no_decision(
    body: Json | bytes, what: str, wording: Wording
) -> None:
    """400, and the API server goes by its failurePolicy."""
    world = World(SPOT)
    answer = world.post(body)
    assert answer.status == 400
    assert what in answer.body.decode()
    wording(answer.body.decode())
    assert world.counted("unjudged") == 1


def test_an_object_that_is_nested_too_deeply_is_refused() -> None:
    """However deep: it is told, and not a fault of ours."""
    deep: Any = "x"
    for _ in range(200):
        deep = {"a": deep}
    body = orjson.dumps(review(setting(overrides={"securityContext": deep})))
    response = World(SPOT).post(body).response
    assert response["allowed"] is False
    assert "nested more than" in response["status"]["message"]


def test_an_internal_error_is_not_a_decision() -> None:
    world = World(SPOT)
    world.nodes = [None]  # type: ignore[list-item]
    with logged(logging.ERROR) as lines:
        assert world.post(review(setting())).status == 500
    assert "Traceback" in lines[0]
    assert world.metrics.registry.get_sample_value("fairlead_engine_errors_total") == 1


def test_a_refusal_is_logged_with_who_wrote_what_and_nothing_of_it() -> None:
    """The object by name; what it says is its author's."""
    with logged(logging.INFO) as lines:
        World(SPOT).post(review(setting(of="hidden"), dryRun=True))
        World(SPOT).post(review(setting()))
    (line,) = lines
    assert {key: json.loads(line)[key] for key in ("object", "operation", "user", "errors")} == {
        "object": "placementpolicies/setting",
        "operation": "CREATE",
        "user": "admin",
        "errors": 1,
    }
    assert json.loads(line)["dry_run"] is True
    assert "hidden" not in line


def test_seconds_of_judging_do_not_hide_among_those_of_pods() -> None:
    """The histogram is of decisions about pods."""
    world = World(SPOT)
    world.post(review(setting()))
    value = world.metrics.registry.get_sample_value
    assert value("fairlead_admission_duration_seconds_count") == 0
    assert (
        value("fairlead_admission_requests_total", {"result": "policy-allowed", "code": "200"}) == 1
    )
