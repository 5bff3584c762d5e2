"""What comes back from the API server: bytes to objects, refusals and silence to errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import orjson
from kubernetes.aio.config.config_exception import ConfigException

from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The reason of an error for which no answer came; Kubernetes' own word where a server gave up.
TIMEOUT: Final = "Timeout"


def decode(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object in `data`. Raises ClusterError, beginning with `where`, if it is none."""
    try:
        answer = orjson.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ClusterError(
            f"{where}: the answer is no JSON object; is this a Kubernetes API server?"
        )
    return answer


def refusal(status: int, headers: Mapping[str, str], data: bytes, where: str) -> ClusterError:
    """The error for an HTTP answer of 300 or more: a Status object, or what a proxy says."""
    try:
        body = orjson.loads(data)
    except ValueError:
        body = None
    after = _seconds(headers.get("Retry-After"))
    if isinstance(body, dict) and body.get("kind") == "Status":
        return from_status(body, where, status=status, retry_after=after)
    return ClusterError(f"{where}: HTTP status {status}", status=status, retry_after=after)


def from_status(
    body: Mapping[str, Any],
    where: str,
    *,
    status: int | None = None,
    retry_after: float | None = None,
) -> ClusterError:
    """The error that a Status object tells of, in an answer or within a watch."""
    details = body.get("details")
    if retry_after is None and isinstance(details, dict):
        retry_after = _seconds(details.get("retryAfterSeconds"))
    code = body.get("code")
    if status is None and isinstance(code, int):
        status = code
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or "no reason given")
    return ClusterError(
        f"{where}: {status} {reason}: {message}" if reason else f"{where}: {status}: {message}",
        status=status,
        reason=reason,
        retry_after=retry_after,
        words=str(body.get("message") or ""),
    )


@contextmanager
def transport_errors(where: str) -> Iterator[None]:
    """Turn what aiohttp raises, when no answer comes, into ClusterErrors that begin with `where`.

    The cause is not chained: the repr of some of aiohttp's errors has the request's headers.
    """
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        raise ClusterError(
            f"{where}: the certificate of {error.host}:{error.port} is not trusted:"
            f" {error.certificate_error}"
        ) from None
    except aiohttp.ClientConnectorError as error:
        raise ClusterError(
            f"{where}: cannot connect to {error.host}:{error.port}: {error.os_error.strerror}."
            " Is the API server running, and is its address right?"
        ) from None
    except TimeoutError:
        raise ClusterError(
            f"{where}: the API server did not answer in time", reason=TIMEOUT
        ) from None
    except (aiohttp.ClientError, OSError, ValueError, ConfigException) as error:
        raise ClusterError(f"{where}: {type(error).__name__}: {error}") from None


def _seconds(value: object) -> float | None:
    """Retry-After in seconds; the API server never gives a date there."""
    text = str(value)
    return float(text) if text.isascii() and text.isdigit() and text != "0" else None
