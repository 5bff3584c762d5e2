"""AdmissionReview: bytes to a request, and a decision to bytes.

Source: k8s.io/api/admission/v1 types.go.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import orjson

from webhook import names
from webhook.decision.advice import signed
from webhook.dns_names import MAX_LABEL, MAX_SUBDOMAIN
from webhook.errors import InvalidReview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.patch import Operation
    from webhook.placement.shapes import JsonObject

API_VERSION = "admission.k8s.io/v1"
# JSON values in a review: an empty object takes two bytes of the body and forty times as many of
# memory. A pod at the size limit (placement/pod.py) has 200,000.
MOST_VALUES: Final = 262_144
# Characters of a uid; those of Kubernetes have 36.
LONGEST_UID: Final = 128
_DIGITS_TO_ZERO = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
# No 64-bit integer has more digits, so only a body with this many in a row may exceed 64 bits.
_MANY_DIGITS = b"0" * 19
_LONG_INTEGER: Final = re.compile(rb"(?<![\d.eE+-])-?\d{19,}(?![\d.eE])")
# The form in which Go writes a review: fields in the order of their declaration.
_UID: Final = re.compile(
    rb'\s*\{\s*"kind":\s*"AdmissionReview",\s*"apiVersion":\s*"admission\.k8s\.io/v1",'
    rb'\s*"request":\s*\{\s*"uid":\s*"([0-9A-Za-z-]{1,%d})"' % LONGEST_UID
)
# The fields after the uid. The object, which its author wrote, comes after the operation.
_OBJECT: Final = re.compile(
    rb',\s*"kind":\s*\{[^{}]{0,600}"kind":\s*"([0-9A-Za-z]{1,%d})"\s*\}'
    rb'(?:(?!"operation").){0,4000}?"name":\s*"([0-9a-z.-]{1,%d})",\s*"(?:namespace|operation)":'
    % (MAX_LABEL, MAX_SUBDOMAIN)
)


class Unreadable(InvalidReview):
    """A body that is not parsed completely; `uid` is the request's, empty if not found."""

    def __init__(self, reason: str, body: bytes) -> None:
        self.uid = uid_in(body)
        super().__init__(reason)


class PodRequest(NamedTuple):
    """The creation of a pod. `user` and `groups` are those that the API server authenticated.

    as_decided: whether a command asks by dry run about a pod that it has decided on itself
    """

    uid: str
    namespace: str
    name: str
    user: str
    groups: Sequence[str]
    dry_run: bool
    as_decided: bool
    pod: JsonObject

    @property
    def title(self) -> str:
        """Its name; with generateName, which leaves the name to the API server, the prefix."""
        generate = self.pod["metadata"].get("generateName")
        return self.name or (generate if isinstance(generate, str) else "")


def parse_review(body: bytes, *, most_values: int = MOST_VALUES) -> JsonObject:
    """Return the request in the body of a POST, for any kind; only its uid is validated.

    Raises InvalidReview with the reason; Unreadable if the body cannot be parsed at all.
    """
    review = _json(body, most_values)
    if not isinstance(review, dict):
        raise InvalidReview(f"the body is a JSON {_kind(review)}, not an AdmissionReview")
    if review.get("kind") != "AdmissionReview" or review.get("apiVersion") != API_VERSION:
        actual = f"{review.get('apiVersion')!r} {review.get('kind')!r}"
        raise InvalidReview(f"want an AdmissionReview of {API_VERSION}, not {actual[:200]}")
    request: JsonObject = member(review, "request", dict, "request")
    uid = member(request, "uid", str, "request.uid")
    if not uid:
        raise InvalidReview("request.uid is empty: the answer has to carry it")
    _bounded(uid, LONGEST_UID, "request.uid")
    return request


def parse(body: bytes) -> PodRequest:
    """Parse the creation of a pod from the body of a POST. Raises InvalidReview with the reason."""
    request = parse_review(body)
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
    # Without a user the engine would trust the pod's owner references, as it does offline.
    if not member(user, "username", str, "request.userInfo.username"):
        raise InvalidReview("request.userInfo.username is empty: the API server names every user")
    groups = user.get("groups")
    groups = [] if groups is None else groups
    if not isinstance(groups, list) or not {*map(type, groups)} <= {str}:
        raise InvalidReview("request.userInfo.groups: want an array of strings")
    dry_run = request.get("dryRun") is True
    options = request.get("options")
    manager = options.get("fieldManager") if isinstance(options, dict) else None
    return PodRequest(
        uid=request["uid"],
        # The pod's own namespace may be empty here; the request's never is.
        namespace=name_in(request, "namespace", "request.namespace"),
        name=optional(request, "name", "request.name", longest=MAX_SUBDOMAIN),
        user=user["username"],
        groups=groups,
        dry_run=dry_run,
        # Both are of the request and not of the pod: no template can have them.
        as_decided=dry_run and manager == names.AS_DECIDED,
        pod=pod,
    )


def _json(body: bytes, most_values: int) -> Any:
    # Every value but the first follows a separator; some separators may be inside strings.
    outside = b""
    may_be_many = len(body) >= most_values and _separators(body) >= most_values
    if may_be_many or _MANY_DIGITS in body.translate(_DIGITS_TO_ZERO):
        outside = _outside_texts(body, most_values)
        if _separators(outside) >= most_values:
            raise _too_many(body, most_values)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the body is not JSON: {error}", body) from None
    # orjson silently reads an integer over 64 bits as a float.
    if outside:
        for match in _LONG_INTEGER.finditer(outside):
            _check_int64(match[0], body)
    return value


def _too_many(body: bytes, most_values: int) -> Unreadable:
    return Unreadable(
        f"the review has over {most_values} JSON values, the most that are read", body
    )


def _separators(text: bytes) -> int:
    # Counting each character takes ten times as long where there are many.
    return len(text) - len(text.translate(None, b",{["))


def _outside_texts(body: bytes, most_values: int) -> bytes:
    """Return the body with each string as `"`. Raises Unreadable if it has too many strings."""
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Each value may have a key and a string, with two quotation marks each.
    if unescaped.count(b'"') > 4 * most_values:
        raise _too_many(body, most_values)
    return b'"'.join(unescaped.split(b'"')[::2])


def uid_in(body: bytes) -> str:
    """Return the uid of a review in the form that the API server writes; empty if not found."""
    match = _UID.match(body)
    return match[1].decode() if match else ""


def object_in(body: bytes) -> str:
    """Return kind and name of a review's object (`Job train`) without parsing the body.

    Empty if the review has no name, or is not in the form that the API server writes.
    """
    head = _UID.match(body)
    match = _OBJECT.match(body, head.end()) if head else None
    return f"{match[1].decode()} {match[2].decode()}" if match else ""


def _check_int64(text: bytes, body: bytes) -> None:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise Unreadable(f"the body holds an integer over 64 bits: {text[:40].decode()}", body)


def _bounded(text: str, longest: int, path: str) -> str:
    if len(text) > longest:
        raise InvalidReview(f"{path} has {len(text)} characters: want at most {longest}")
    return text


def member(holder: JsonObject, key: str, wanted: type, path: str) -> Any:
    """Return a member of the wanted type. Messages name it by `path`. Raises InvalidReview."""
    value = holder.get(key)
    if not isinstance(value, wanted):
        _wrong(path, wanted, value)
    return value


def name_in(holder: JsonObject, key: str, path: str) -> str:
    """Return a member that is a name. Messages name it by `path`. Raises InvalidReview."""
    return _bounded(member(holder, key, str, path), MAX_SUBDOMAIN, path)


def optional(holder: JsonObject, key: str, path: str, *, longest: int | None = None) -> str:
    """Return a string; empty if absent. Raises InvalidReview for another type or if too long."""
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


def answer(
    uid: str,
    *,
    allowed: bool,
    message: str = "",
    patch: Sequence[Operation] = (),
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> bytes:
    """Return the AdmissionReview with the response. A rejection has HTTP status 403 and a message.

    Each warning gets the signature.

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
