"""What is an AdmissionReview of a pod, what is not, and what the answer looks like."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.admission.reviews import Json, pod, review
from tests.wording import Wording, mentions
from webhook.admission.review import (
    LONGEST_UID,
    MOST_VALUES,
    Unreadable,
    answer,
    parse,
)
from webhook.dns_names import MAX_SUBDOMAIN
from webhook.errors import InvalidReview
from webhook.placement.node_affinity import MAX_REQUIREMENTS, MAX_TERMS, MAX_VALUES
from webhook.placement.pod import MAX_ENTRIES


def body(**request: object) -> bytes:
    return json.dumps(review(**request)).encode()


def refused(text: bytes) -> str:
    with pytest.raises(InvalidReview) as caught:
        parse(text)
    return str(caught.value)


def test_the_request_s_own_namespace_counts() -> None:
    """A pod's own namespace may be empty at this point, and its name is not made yet."""
    nameless = pod()
    nameless["metadata"] = {"generateName": "p-"}
    request = parse(body(obj=nameless, name="", dryRun=True))
    assert (request.uid, request.namespace, request.name) == ("0df28fbd", "ml-team", "")
    assert (request.user, request.dry_run) == ("somebody", True)
    assert request.groups == ["system:authenticated"]
    assert request.pod == nameless


def test_what_a_request_may_lack_is_empty() -> None:
    bare = review()
    for member in ("name", "dryRun", "oldObject", "options", "resource"):
        del bare["request"][member]
    request = parse(json.dumps(bare).encode())
    assert (request.name, request.dry_run) == ("", False)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff\xfe", b"nonsense", b'{"a": NaN}', b'{"a": Infinity}', b'"\\ud800"', b"{}x"],
    ids=["empty", "cut", "not UTF-8", "text", "NaN", "Infinity", "lone surrogate", "more after it"],
)
def test_what_is_not_json_is_refused_as_such(text: bytes) -> None:
    """NaN, infinite numbers and halves of a character are not JSON either."""
    assert "not JSON" in refused(text)


@pytest.mark.parametrize("where", [b"[" * 100_000, b'{"a":' * 100_000])
def test_deep_nesting_is_refused(where: bytes) -> None:
    """However deep, it ends neither the process nor in an error that nobody expects."""
    assert "not JSON" in refused(where)
    closing = {b"[": b"]", b"{": b"}"}[where[:1]]
    whole = where + b"1" + closing * 100_000
    assert "not JSON" in refused(whole)


def test_deep_nesting_within_a_pod_is_refused() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    assert "not JSON" in refused(body(obj={"deep": "HERE"}).replace(b'"HERE"', deep))


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "1" * 300])
def test_an_integer_over_64_bits_is_refused(number: str) -> None:
    """It would come out as another number, and a patch would hold that."""
    text = body(obj={"n": "HERE"}).replace(b'"HERE"', number.encode())
    assert "over 64 bits" in refused(text)


@pytest.mark.parametrize("number", ["9223372036854775807", "-9223372036854775808"])
def test_integers_of_64_bits_are_exact(number: str) -> None:
    text = body(obj={"n": "HERE"}).replace(b'"HERE"', number.encode())
    assert parse(text).pod["n"] == int(number)


def test_many_digits_in_a_string_are_not_a_number() -> None:
    assert parse(body(obj={"n": "1" * 400})).pod["n"] == "1" * 400


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"kind": "Pod"}, ("AdmissionReview", "not", "'Pod'")),
        ({"apiVersion": "admission.k8s.io/v1beta1"}, ("v1beta1",)),
        ({"apiVersion": None}, ("AdmissionReview", "not None")),
        ({"kind": {"deep": "x" * 9999}}, ("AdmissionReview", "not", "{'deep': 'xxx")),
        ({"request": None}, ("request: ", "object", "null")),
        ({"request": []}, ("request: ", "object", "array")),
    ],
)
def test_what_is_not_a_review_of_our_version_is_refused(
    change: Json, facts: tuple[str, ...], wording: Wording
) -> None:
    """The reason names what was seen, and is short whatever was sent."""
    reason = refused(json.dumps({**review(), **change}).encode())
    mentions(reason, *facts)
    assert len(reason) < 400
    wording(reason)


@pytest.mark.parametrize("text", [b"null", b"true", b"1", b"1.5", b'"a"', b"[]"])
def test_a_body_that_is_not_an_object_is_refused(text: bytes) -> None:
    assert "not an AdmissionReview" in refused(text)


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"uid": None}, ("request.uid",)),
        ({"uid": ""}, ("request.uid", "empty")),
        ({"uid": 5}, ("request.uid: ", "string", "number")),
        ({"namespace": None}, ("request.namespace",)),
        ({"namespace": ["a"]}, ("request.namespace: ", "string", "array")),
        ({"name": 5}, ("request.name",)),
        ({"operation": "UPDATE"}, ("CREATE", "'UPDATE'")),
        ({"operation": {}}, ("CREATE",)),
        ({"kind": "Pod"}, ("request.kind",)),
        ({"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}}, ("v1 Pod",)),
        ({"kind": {"group": "", "version": "v2", "kind": "Pod"}}, ("v1 Pod",)),
        ({"subResource": "ephemeralcontainers"}, ("request.subResource",)),
        ({"obj": []}, ("request.object: ", "object", "array")),
        ({"object": None}, ("request.object: ", "object", "null")),
        ({"userInfo": "me"}, ("request.userInfo",)),
        ({"userInfo": None}, ("request.userInfo",)),
        ({"userInfo": {}}, ("request.userInfo.username",)),
        ({"userInfo": {"username": ""}}, ("request.userInfo.username", "empty")),
        ({"userInfo": {"username": 5}}, ("request.userInfo.username",)),
        ({"userInfo": {"username": "me", "groups": "g"}}, ("request.userInfo.groups",)),
        ({"userInfo": {"username": "me", "groups": [1]}}, ("request.userInfo.groups",)),
    ],
)
def test_a_request_that_is_not_a_creation_of_a_pod_is_refused(
    change: dict[str, Any], facts: tuple[str, ...], wording: Wording
) -> None:
    """The reason says which member, what it should be, and what it is."""
    reason = refused(body(**change))
    mentions(reason, *facts)
    wording(reason)


def test_an_answer_without_a_patch_has_no_patch_type() -> None:
    """The API server refuses one without the other."""
    assert json.loads(answer("u", allowed=True)) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_an_answer_carries_patch_warnings_and_audit_annotations() -> None:
    """As k8s.io/api/admission/v1 wants them: the patch in base64, and its type."""
    response = json.loads(
        answer(
            "u",
            allowed=True,
            patch=[{"op": "add", "path": "/spec/a", "value": "ü"}],
            warnings=["one", "fairlead: two"],
            audit={"result": "placed"},
        )
    )["response"]
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/spec/a", "value": "ü"}
    ]
    assert response["warnings"] == ["fairlead: one", "fairlead: two"]
    assert response["auditAnnotations"] == {"result": "placed"}


def test_a_refusal_is_a_403_with_the_message() -> None:
    """kubectl prints the message, whatever the code; 403 is what a refusal by policy is."""
    response = json.loads(answer("u", allowed=False, message="because"))["response"]
    assert response == {
        "uid": "u",
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": "because"},
    }


@pytest.mark.parametrize(
    ("member", "longest"),
    [("uid", LONGEST_UID), ("name", MAX_SUBDOMAIN), ("namespace", MAX_SUBDOMAIN)],
)
def test_a_text_that_is_logged_has_a_limit(member: str, longest: int) -> None:
    """Six megabytes of it would be 37 in the log."""
    assert getattr(parse(body(**{member: "x" * longest})), member) == "x" * longest
    text = refused(body(**{member: "\x7f" * (longest + 1)}))
    assert text == f"request.{member} has {longest + 1} characters: want at most {longest}"


def _spec(text: bytes) -> bytes:
    """A review whose pod has this as its spec."""
    return body(obj={"metadata": {}, "spec": "HERE"}).replace(b'"HERE"', text)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"{}," * MOST_VALUES + b"{}]",
        b"[" + b"0," * MOST_VALUES + b"0]",
        b"[" * MOST_VALUES + b"]" * MOST_VALUES,
        b"{" + b'"":"",' * MOST_VALUES + b'"":""}',
        b"1" * 19 + b'"' * (4 * MOST_VALUES + 1),
    ],
    ids=["objects", "numbers", "nested", "members", "quotation marks"],
)
def test_more_values_than_any_pod_has_are_not_read(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes up to forty times its bytes, and is made before anybody looks at it."""

    def loads(_body: bytes) -> Any:
        raise AssertionError("read")

    monkeypatch.setattr("webhook.admission.review.orjson.loads", loads)
    with pytest.raises(Unreadable):
        parse(_spec(text))


def test_values_inside_of_strings_do_not_count() -> None:
    """However it is escaped: an annotation may hold a whole object, a variable a long list."""
    text = json.dumps('[{,\\"1' * MOST_VALUES).encode()
    assert parse(_spec(text)).pod["spec"] == '[{,\\"1' * MOST_VALUES


def test_a_pod_with_all_that_the_budget_of_a_pod_allows_is_read() -> None:
    """It is for the engine to say which part of it is too much."""
    values = [f"v{at}" for at in range(MAX_VALUES // MAX_REQUIREMENTS)]
    requirement = {"key": "k", "operator": "In", "values": values}
    term = {"matchExpressions": [requirement] * (MAX_REQUIREMENTS // MAX_TERMS)}
    entry = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "seconds": 1}
    whole = pod(terms=[term] * MAX_TERMS, entries=[entry] * 6 * MAX_ENTRIES)
    assert parse(body(obj=whole)).pod == whole


@pytest.mark.parametrize(
    "number", [b"1." + b"1" * 30, b"1" * 30 + b".5", b"1" * 30 + b"e-5", b"1e-" + b"1" * 30]
)
def test_a_number_that_is_not_an_integer_may_have_many_digits(number: bytes) -> None:
    assert isinstance(parse(_spec(b'{"n":' + number + b"}")).pod["spec"]["n"], float)


def test_digits_in_a_string_are_not_an_integer() -> None:
    """Behind a comma or a colon, and behind a quotation mark that is escaped."""
    digits = "9" * 30
    texts = [digits, f":{digits}", f",{digits},", f'",{digits}', f"\\{digits}"]
    assert parse(_spec(json.dumps(texts).encode())).pod["spec"] == texts
