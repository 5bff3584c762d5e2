"""Decode the API server's answers, and turn failures into errors."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import orjson
from kubernetes.aio.config.config_exception import ConfigException

from webhook.errors import ClusterError
from webhook.kube.failure_text import describe_refusal
from webhook.kube.throttling import retry_after_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.kube.failure_text import Call

# The reason of an error without an answer; Kubernetes uses the same reason if a server timed out.
TIMEOUT: Final = "Timeout"
# The server, or a proxy in front of it, is busy, starting or ending: the same request may succeed a
# moment later. Not 500, which is also the answer about a webhook that fails, and stays.
_BUSY: Final = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)

# Maximum nesting of objects and lists, including the page's own. The API server stores ten times as
# many levels, also in managedFields, and orjson parses 1,024. One object with deeper nesting must
# not make a whole page unreadable.
MOST_LEVELS: Final = 500
# Matches everything up to the next bracket outside a string, which is the group, or to the end. It
# matches at any place, so that no search begins inside a string, and ends after one step in text
# that is not JSON.
_TO_BRACKET: Final = re.compile(
    rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(?:([\[\]{}])|".*+|\Z)', re.DOTALL
)


def decode(data: bytes, call: Call) -> dict[str, Any]:
    """Return the JSON object in `data`, the answer to a call. Raises ClusterError if it is invalid.

    Values nested deeper than MOST_LEVELS become null.
    """
    answer = _loads(data)
    if answer is None:
        answer = _loads(without_depths(data))
    if not isinstance(answer, dict):
        raise ClusterError(
            f"cannot {call}: the answer is not a JSON object; is this a Kubernetes API server?"
        )
    return answer


def _loads(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError:
        return None


def without_depths(data: bytes, most: int = MOST_LEVELS) -> bytes:
    """Return JSON text with null in place of every object and list below `most` levels."""
    kept: list[bytes] = []
    depth = begin = 0
    for match in _TO_BRACKET.finditer(data):
        bracket = match[1]
        if bracket in (b"[", b"{"):
            depth += 1
            if depth == most + 1:
                kept += (data[begin : match.start(1)], b"null")
        elif bracket:
            if depth == most + 1:
                begin = match.end()
            depth -= 1
    # Text that ends inside a removed part is invalid JSON, and must stay invalid.
    return data if depth > most else b"".join((*kept, data[begin:]))


def refusal(status: int, headers: Mapping[str, str], data: bytes, call: Call) -> ClusterError:
    """Return the error for an HTTP status of 300 or more: a Status object, or a proxy's text."""
    try:
        body = orjson.loads(data)
    except ValueError:
        body = None
    after = retry_after_seconds(headers.get("Retry-After"))
    if isinstance(body, dict) and body.get("kind") == "Status":
        warned = [value for name, value in headers.items() if name.lower() == "warning"]
        return from_status(body, call, status=status, retry_after=after, warnings=warned)
    answer = body if isinstance(body, dict) else None
    text = describe_refusal(call, status, "").text
    return ClusterError(text, status=status, retry_after=after, answer=answer)


def from_status(
    body: Mapping[str, Any],
    call: Call,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    warnings: Sequence[str] = (),
) -> ClusterError:
    """Return the error in a Status object, from an answer or a watch."""
    details = body.get("details")
    if retry_after is None and isinstance(details, dict):
        retry_after = retry_after_seconds(details.get("retryAfterSeconds"))
    code = body.get("code")
    if status is None and isinstance(code, int):
        status = code
    metadata = body.get("metadata")
    position = metadata.get("continue") if isinstance(metadata, dict) else None
    words = str(body.get("message") or "")
    refused = describe_refusal(call, status or 0, words)
    return ClusterError(
        refused.text,
        why=refused.why,
        status=status,
        reason=str(body.get("reason") or ""),
        retry_after=retry_after,
        words=words,
        warnings=warnings,
        position=str(position or ""),
    )


def is_busy(error: ClusterError) -> bool:
    """Return whether the server answered that it is busy, starting or ending."""
    return error.status in _BUSY


def tells_nothing(error: ClusterError) -> bool:
    """Return whether an error tells nothing of rights and objects: there was no answer, or the
    server is busy or fails."""
    status = error.status
    return status is None or is_busy(error) or status >= HTTPStatus.INTERNAL_SERVER_ERROR


@contextmanager
def transport_errors(call: Call) -> Iterator[None]:
    """Convert aiohttp's errors without an answer to ClusterErrors that say what was asked for.

    The cause is not chained, because the repr of some aiohttp errors has the request's headers.
    """
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        raise ClusterError(
            f"the certificate of the API server {error.host}:{error.port} is not trusted:"
            f" {error.certificate_error}"
        ) from None
    except aiohttp.ClientConnectorError as error:
        raise ClusterError(
            f"cannot connect to the API server {error.host}:{error.port}:"
            f" {_reason(error.os_error)}. Is it running, and is its address right?"
        ) from None
    except TimeoutError:
        raise ClusterError(
            f"cannot {call}: the API server did not answer in time", reason=TIMEOUT
        ) from None
    except (aiohttp.ClientError, OSError, ValueError, ConfigException) as error:
        raise ClusterError(f"cannot {call}: {type(error).__name__}: {error}") from None


def _reason(error: OSError) -> str:
    """Return what the number means; asyncio's text of a refused connection repeats the address.

    Errors of getaddrinfo have numbers of their own, below zero.
    """
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)
