"""What holds of every answer, whatever was sent."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

import jsonpatch
import orjson

from tests.admission.reviews import Answer
from tests.fuzz.additions import Json
from tests.fuzz.reviews import NAMESPACES
from tests.fuzz.tally import Tally
from tests.laws.strategies import PATCHED
from webhook import names
from webhook.sources import SOURCES

# Where a patch may reach; whatever is below these too.
REACH = ("/metadata/labels", "/metadata/annotations", *(f"/spec/{field}" for field in PATCHED))
# The API server quotes the reason to whoever made the pod.
MOST_CHARACTERS = 2000
MARKS = [mark for source in SOURCES for mark in source.marks if not mark.namespace]


@dataclass
class Examiner:
    """Sends bodies one way, and holds each answer against the rules."""

    way: str
    post: Callable[[bytes], Answer]
    tally: Tally

    def examine(self, body: bytes) -> Answer:
        """The answer to the body, which keeps every rule."""
        try:
            answer = self.post(body)
            self.tally.count(self.way, answer.status)
            if answer.status == 200 and b"cannot be decided on" in answer.body:
                examine_unread(answer)
            elif answer.status == 200:
                self._examine_review(body, answer)
            else:
                examine_problem(body, answer)
        except Exception as error:
            # One of many, which a reader wants to see alone.
            error.add_note(f"the body sent: {body[:20_000]!r}")
            raise
        return answer

    def _examine_review(self, body: bytes, answer: Answer) -> None:
        with depth():
            sent = orjson.loads(body)
            pod = sent["request"]["object"]
            response = examined_response(sent, answer)
            patch = answer.patch
            belongs = is_marked(pod, sent["request"]["namespace"])
            if not belongs:
                examine_unmarked(pod, response)
                return
            if not response["allowed"]:
                assert not patch
                return
            patched = examined_patch(pod, patch)
            again = encoded_again(sent, patched)
        second = self.post(again)
        self.tally.again += 1
        assert second.status == 200, second
        assert second.response["allowed"], second
        assert "patch" not in second.response, second.patch


def examine_unmarked(pod: Json, response: Json) -> None:
    """A pod of no run passes unchanged; warnings are about keys with Fairlead's prefix."""
    assert response["allowed"]
    assert response.keys() <= {"uid", "allowed", "warnings"}, response
    metadata = pod["metadata"]
    keys = [*(metadata.get("labels") or ()), *(metadata.get("annotations") or ())]
    ours = any(key.startswith(names.PREFIX) for key in keys)
    for warning in response.get("warnings", []):
        assert ours, warning
        assert names.PREFIX in warning


def examine_unread(answer: Answer) -> None:
    """A review that cannot be read is refused with the reason, and with nothing else."""
    response = answer.response
    assert response.keys() == {"uid", "allowed", "status"}, response
    assert response["uid"]
    assert response["allowed"] is False
    assert len(response["status"]["message"]) < MOST_CHARACTERS


def examine_problem(body: bytes, answer: Answer) -> None:
    """An answer that is no review tells why, is no 500, and a 503 only where one is meant."""
    assert answer.status in (400, 413, 503), answer
    reason = answer.body.decode("utf-8")
    assert reason.startswith("fairlead: "), reason
    assert len("fairlead: x") < len(reason) < MOST_CHARACTERS, len(reason)
    assert (answer.headers.get("retry-after") == "1") == (answer.status == 503)
    if answer.status == 503:
        assert orjson.loads(body)["request"]["namespace"] not in NAMESPACES


def examined_response(sent: Json, answer: Answer) -> Json:
    """The response, which has the form that Kubernetes wants."""
    decoded = json.loads(answer.body, parse_constant=_no_constant)
    assert decoded.keys() == {"apiVersion", "kind", "response"}
    assert (decoded["apiVersion"], decoded["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: Json = decoded["response"]
    assert response["uid"] == sent["request"]["uid"]
    assert isinstance(response["allowed"], bool)
    more = {"patch", "patchType"} if response["allowed"] else {"status"}
    assert response.keys() <= {"uid", "allowed", "warnings", "auditAnnotations"} | more
    assert ("patch" in response) == ("patchType" in response)
    assert response.get("patchType", "JSONPatch") == "JSONPatch"
    if not response["allowed"]:
        message = response["status"]["message"]
        assert message.startswith("fairlead: "), message
        assert len(message) < MOST_CHARACTERS, len(message)
    warnings = response.get("warnings", [])
    assert all(0 < len(warning) < 256 and warning.isprintable() for warning in warnings), warnings
    assert all(warning.startswith("fairlead: ") for warning in warnings), warnings
    assert sum(map(len, warnings)) <= 4096
    for key, value in response.get("auditAnnotations", {}).items():
        assert key, "a key without a name"
        assert "/" not in key, key
        assert isinstance(value, str), value
    return response


def examined_patch(pod: Json, patch: list[Json]) -> Json:
    """The pod with the patch applied, which reaches placement fields only and stamps the pod."""
    assert all(operation["op"] in ("add", "remove") for operation in patch)
    for operation in patch:
        assert any(f"{operation['path']}/".startswith(f"{field}/") for field in REACH), operation
    patched: Json = jsonpatch.apply_patch(copy.deepcopy(pod), patch)
    stamp = json.loads(patched["metadata"]["annotations"][names.PLACEMENT])
    said = stamp.keys() - {"exceptions", "fallback", "removed", "leftOut", "turns"}
    assert said in ({"set", "policies"}, {"set", "leftAlone"})
    return patched


def encoded_again(sent: Json, patched: Json) -> bytes:
    """The review of the API server's second call: the Priority plugin has run again."""
    if "priorityClassName" in patched["spec"] and "priority" not in patched["spec"]:
        patched = {**patched, "spec": {**patched["spec"], "priority": 10}}
    return json.dumps({**sent, "request": {**sent["request"], "object": patched}}).encode()


def is_marked(pod: Json, namespace: str) -> bool:
    """Whether the pod belongs to a run: its labels or its namespace's say so."""
    if NAMESPACES[namespace].get(names.PLACE) == names.PLACE_ALL:
        return True
    labels = pod["metadata"].get("labels") or {}
    return any(mark.key in labels and mark.value in (None, labels[mark.key]) for mark in MARKS)


@contextmanager
def depth() -> Iterator[None]:
    """Room for deep values, for the tests' own decoders; the webhook has to do without it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _no_constant(text: str) -> NoReturn:
    raise AssertionError(f"{text} is not JSON")
