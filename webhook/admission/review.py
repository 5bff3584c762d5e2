"""The AdmissionReview: bytes to a request, and a decision to bytes.

Source: k8s.io/api/admission/v1 types.go.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

import orjson

from webhook.errors import InvalidReview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.patch import Operation
    from webhook.placement.shapes import JsonObject

API_VERSION = "admission.k8s.io/v1"
# kubectl prints a warning without the name of the webhook that it comes from.
SIGNATURE: Final = "fairlead: "
# JSON values in a review: an empty object takes two bytes of the body and forty times as many of
# memory. A pod with all that the budget of a pod allows (placement/pod_size.py) has 200,000.
MOST_VALUES: Final = 262_144
# Characters of a uid: those of Kubernetes have 36.
LONGEST_UID: Final = 128
# Characters of any object's name (apimachinery, validation.DNS1123SubdomainMaxLength).
LONGEST_NAME: Final = 253
_DIGITS_TO_ZERO = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
# No integer of 64 bits has more digits, so only a body with this many in a row may hold a larger.
_MANY_DIGITS = b"0" * 19
_LONG_INTEGER: Final = re.compile(rb"(?<![\d.eE+-])-?\d{19,}(?![\d.eE])")
# How Go writes a review: the fields in the order of their declaration.
_UID: Final = re.compile(
    rb'\s*\{\s*"kind":\s*"AdmissionReview",\s*"apiVersion":\s*"admission\.k8s\.io/v1",'
    rb'\s*"request":\s*\{\s*"uid":\s*"([0-9A-Za-z-]{1,%d})"' % LONGEST_UID
)


class Unreadable(InvalidReview):
    """A body that is not read to its end; `uid` is the request's, empty if not found."""

    def __init__(self, reason: str, body: bytes) -> None:
        self.uid = uid_in(body)
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The creation of a pod. `user`, in `groups`, asks for it, as the API server knows them."""

    uid: str
    namespace: str
    name: str
    user: str
    groups: Sequence[str]
    dry_run: bool
    pod: JsonObject


def read(body: bytes, *, most_values: int = MOST_VALUES) -> JsonObject:
    """The request in the body of a POST, of whatever it is: only that its uid is there is sure.

    Raises InvalidReview with the reason; Unreadable, before anything is made of the body.
    """
    review = _json(body, most_values)
    if not isinstance(review, dict):
        raise InvalidReview(f"the body is a JSON {_kind(review)}, not an AdmissionReview")
    if review.get("kind") != "AdmissionReview" or review.get("apiVersion") != API_VERSION:
        seen = f"{review.get('apiVersion')!r} {review.get('kind')!r}"
        raise InvalidReview(f"want an AdmissionReview of {API_VERSION}, not {seen[:200]}")
    request: JsonObject = member(review, "request", dict, "request")
    uid = member(request, "uid", str, "request.uid")
    if not uid:
        raise InvalidReview("request.uid is empty: the answer has to carry it")
    _bounded(uid, LONGEST_UID, "request.uid")
    return request


def parse(body: bytes) -> PodRequest:
    """The creation of a pod in the body of a POST. Raises InvalidReview with the reason."""
    request = read(body)
    operation = request.get("operation")
    if operation != "CREATE":
        raise InvalidReview(f"request.operation: want CREATE, not {str(operation)[:50]!r}")
    kind = member(request, "kind", dict, "request.kind")
    if (kind.get("group", ""), kind.get("version"), kind.get("kind")) != ("", "v1", "Pod"):
        raise InvalidReview(f"request.kind: want a v1 Pod, not {str(kind)[:200]}")
    if request.get("subResource"):
        raise InvalidReview("request.subResource: want the pod itself")
    pod = member(request, "object", dict, "request.object")
    user = member(request, "userInfo", dict, "request.userInfo")
    # Without a name the engine would take the pod's word for who made it, as it does offline.
    if not member(user, "username", str, "request.userInfo.username"):
        raise InvalidReview("request.userInfo.username is empty: the API server names every user")
    groups = user.get("groups")
    groups = [] if groups is None else groups
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise InvalidReview("request.userInfo.groups: want an array of strings")
    return PodRequest(
        uid=request["uid"],
        # The pod's own namespace may be empty at this point; the request's never is.
        namespace=name_in(request, "request.namespace"),
        name=optional(request, "name", "request.name", longest=LONGEST_NAME),
        user=user["username"],
        groups=groups,
        dry_run=request.get("dryRun") is True,
        pod=pod,
    )


def _json(body: bytes, most_values: int) -> Any:
    # Every value but the first stands behind one of these; some may be within texts.
    outside = b""
    if _separators(body) >= most_values or _MANY_DIGITS in body.translate(_DIGITS_TO_ZERO):
        outside = _outside_texts(body, most_values)
    if _separators(outside) >= most_values:
        raise _too_many(body, most_values)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the body is not JSON: {error}", body) from None
    # orjson reads an integer over 64 bits as a float and says nothing.
    for found in _LONG_INTEGER.finditer(outside):
        _check_int64(found[0], body)
    return value


def _too_many(body: bytes, most_values: int) -> Unreadable:
    return Unreadable(
        f"the review has over {most_values} JSON values, the most that are read", body
    )


def _separators(text: bytes) -> int:
    # To count each would take ten times as long where they are many.
    return len(text) - len(text.translate(None, b",{["))


def _outside_texts(body: bytes, most_values: int) -> bytes:
    """The body with each text as `"`. Raises Unreadable for more texts than values may have."""
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A key and a text for each value, with two quotation marks each.
    if unescaped.count(b'"') > 4 * most_values:
        raise _too_many(body, most_values)
    return b'"'.join(unescaped.split(b'"')[::2])


def uid_in(body: bytes) -> str:
    """The uid of the request in a review as the API server writes it; empty if it is not found."""
    found = _UID.match(body)
    return found[1].decode() if found else ""


def _check_int64(text: bytes, body: bytes) -> None:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise Unreadable(f"the body holds an integer over 64 bits: {text[:40].decode()}", body)


def _bounded(text: str, longest: int, path: str) -> str:
    if len(text) > longest:
        raise InvalidReview(f"{path} has {len(text)} characters: want at most {longest}")
    return text


def member(holder: JsonObject, key: str, wanted: type, path: str) -> Any:
    """A member of the wanted type. `path` names it in messages. Raises InvalidReview."""
    value = holder.get(key)
    if not isinstance(value, wanted):
        _wrong(path, wanted, value)
    return value


def name_in(holder: JsonObject, path: str) -> str:
    """The object's name at the last part of the path. Raises InvalidReview."""
    return _bounded(member(holder, path.rpartition(".")[2], str, path), LONGEST_NAME, path)


def optional(holder: JsonObject, key: str, path: str, *, longest: int | None = None) -> str:
    """A text; empty if there is none. Raises InvalidReview for anything else, or a longer one."""
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        _wrong(path, str, value)
    return value if longest is None else _bounded(value, longest, path)


_KINDS = {dict: "object", list: "array", str: "string", type(None): "null", bool: "boolean"}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "number")


def _wrong(path: str, wanted: type, value: object) -> NoReturn:
    raise InvalidReview(f"{path}: want a JSON {_KINDS[wanted]}, not {_kind(value)}")


def signed(warning: str) -> str:
    """The warning as an answer has it, so that whoever reads it knows who warns."""
    return warning if warning.startswith(SIGNATURE) else f"{SIGNATURE}{warning}"


def answer(
    uid: str,
    *,
    allowed: bool,
    message: str = "",
    patch: Sequence[Operation] = (),
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> bytes:
    """The AdmissionReview with the response. A refused pod gets HTTP status 403 and the message.

    Each warning is signed.

    Raises InvalidReview if the patch repeats a part of the pod that is nested too deeply to write.
    """
    response: JsonObject = {"uid": uid, "allowed": allowed}
    if patch:
        response["patchType"] = "JSONPatch"
        try:
            # orjson reads a depth of 1,024 and writes one of 254.
            patch_text = orjson.dumps(patch)
        except orjson.JSONEncodeError:
            raise InvalidReview("the pod's placement is nested too deeply") from None
        response["patch"] = base64.b64encode(patch_text).decode("ascii")
    if not allowed:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": message}
    if warnings:
        response["warnings"] = [signed(warning) for warning in warnings]
    if audit:
        response["auditAnnotations"] = dict(audit)
    return orjson.dumps(
        {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    )
