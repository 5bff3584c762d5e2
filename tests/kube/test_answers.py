"""Answers and refusals of the API server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict

from webhook.errors import ClusterError
from webhook.kube.answers import decode, refusal, without_depths
from webhook.kube.failure_text import Call

CALL = Call("POST", "/api/v1/things")


def test_a_refusal_carries_status_reason_and_the_servers_message() -> None:
    body = {"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "pods a exists"}
    error = refusal(409, {}, json.dumps(body).encode(), CALL)
    assert (error.status, error.reason, error.retry_after) == (409, "AlreadyExists", None)
    assert str(error) == "the API server refuses to create things: pods a exists"
    assert error.words == "pods a exists"


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [
        ({"Retry-After": "3"}, {}, 3.0),
        ({}, {"retryAfterSeconds": 5}, 5.0),
        ({"Retry-After": "3"}, {"retryAfterSeconds": 5}, 3.0),
        ({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, {}, None),
        ({"Retry-After": "-1"}, {}, None),
        ({}, {"retryAfterSeconds": 0}, None),
        ({}, None, None),
    ],
)
def test_the_time_to_leave_the_server_alone_is_in_the_header_or_the_status(
    header: dict[str, str], details: object, expected: float | None
) -> None:
    """Whole seconds count, the header's first; anything else is no setting."""
    body = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "details": details}
    assert refusal(429, header, json.dumps(body).encode(), CALL).retry_after == expected


def test_a_refusal_has_the_warnings_beside_it() -> None:
    """Webhooks that admit a pod may warn before another one refuses it."""
    headers = CIMultiDict([("Warning", '299 - "a"'), ("Age", "1"), ("warning", '299 - "b"')])
    body = json.dumps({"kind": "Status", "message": "no"}).encode()
    assert refusal(403, headers, body, CALL).warnings == ['299 - "a"', '299 - "b"']


@pytest.mark.parametrize("body", [b"<html>gateway</html>", b"", b"[]", b'{"kind": "Pod"}'])
def test_a_refusal_by_another_component_is_reported_by_its_status(body: bytes) -> None:
    """A proxy's page is not repeated."""
    error = refusal(502, {"Retry-After": "1"}, body, CALL)
    assert (error.status, error.retry_after) == (502, 1.0)
    assert str(error).startswith("cannot create things: HTTP status 502, and no reason")


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"<html>", b'{"a": NaN}', b"\xff"])
def test_an_answer_that_is_not_an_object_is_an_error(body: bytes) -> None:
    with pytest.raises(ClusterError, match="not a JSON object"):
        decode(body, CALL)


def test_one_object_that_is_nested_too_deep_does_not_hide_the_others() -> None:
    """Anybody who may write an object may nest its managedFields, and the page has it."""
    deep = b'{"f:a":' * 5000 + b"{}" + b"}" * 5000
    odd = b'{"metadata":{"name":"odd \\"[{","managedFields":[{"fieldsV1":' + deep + b"}]}}"
    page = b'{"items":[{"metadata":{"name":"a"}},' + odd + b',{"metadata":{"name":"b"}}]}'
    items = decode(page, CALL)["items"]
    assert [each["metadata"]["name"] for each in items] == ["a", 'odd "[{', "b"]


json_values = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(alphabet='a"\\{}[],:', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet='a"{]', max_size=2), inner, max_size=3)
    ),
)


def cut(value: Any, most: int) -> Any:
    """What is left of a value."""
    if not isinstance(value, (dict, list)):
        return value
    if not most:
        return None
    if isinstance(value, list):
        return [cut(each, most - 1) for each in value]
    return {key: cut(each, most - 1) for key, each in value.items()}


@example("[]", 0)
@given(json_values, st.integers(0, 4))
def test_only_what_is_too_deep_becomes_null(value: Any, most: int) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1)):
        assert json.loads(without_depths(text.encode(), most)) == cut(value, most)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"]", b"}{", b'"', b"[" * 9000, b"{" * 600 + b"}" * 599, b"<html>{}]"]
)
def test_invalid_json_becomes_none(text: bytes) -> None:
    with pytest.raises(ClusterError, match="not a JSON object"):
        decode(text, CALL)
