"""Answers and refusals of the API server."""

from __future__ import annotations

import json

import pytest

from webhook.errors import ClusterError
from webhook.kube.answers import decode, refusal


def test_a_refusal_carries_status_reason_and_the_servers_words() -> None:
    """What a Status object says is what the error says."""
    body = {"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "pods a exists"}
    error = refusal(409, {}, json.dumps(body).encode(), "POST /x")
    assert (error.status, error.reason, error.retry_after) == (409, "AlreadyExists", None)
    assert str(error) == "POST /x: 409 AlreadyExists: pods a exists"
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
    assert refusal(429, header, json.dumps(body).encode(), "GET /x").retry_after == expected


@pytest.mark.parametrize("body", [b"<html>gateway</html>", b"", b"[]", b'{"kind": "Pod"}'])
def test_a_refusal_by_something_else_is_told_by_its_status(body: bytes) -> None:
    """A proxy's page is not repeated."""
    error = refusal(502, {"Retry-After": "1"}, body, "GET /x")
    assert (error.status, error.retry_after, str(error)) == (502, 1.0, "GET /x: HTTP status 502")


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"<html>", b'{"a": NaN}', b"\xff"])
def test_an_answer_that_is_no_object_is_an_error(body: bytes) -> None:
    """Nothing is guessed from it."""
    with pytest.raises(ClusterError, match="no JSON object"):
        decode(body, "GET /x")
