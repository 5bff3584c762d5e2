"""What went wrong with a look at certificates: its name in the metrics, and the cure in words."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.errors import ClusterError

_PASSING: Final = (
    None,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


def kind_of(error: ClusterError) -> str:
    """One of metrics.ERRORS."""
    if error.status == HTTPStatus.CONFLICT:
        return "conflict"
    if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
        return "forbidden"
    return "unreachable" if error.status in _PASSING else "refused"


def in_words(error: ClusterError) -> str:
    """The API server's words, which name the right that is missing or the field, and the cure."""
    match kind_of(error):
        case "forbidden":
            return (
                f"{error}. The keeper of certificates needs this right: apply the Roles of the"
                " manifests again, or start the controller with --no-certificates"
            )
        case "refused" if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return (
                f"{error}. If this is a Secret that cannot be written, an immutable one or one of"
                " a type that wants something else, delete it: it is made anew"
            )
    return str(error)
