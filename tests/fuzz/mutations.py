"""Mutations of reviews: of their structure, at any depth, and of their bytes."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.fuzz.additions import Json
from tests.laws.strategies import REQUIRED, one
from webhook import names

_HUGE = "9" * 4301  # one digit more than Python's int() takes by default

# Texts that stand in the JSON as they are, since nothing that Python has makes them.
RAW = {
    f"@raw {number}@": text
    for number, text in enumerate(
        (
            "NaN",
            "-Infinity",
            "1e400",
            "-1e-400",
            "-0",
            "18446744073709551616",
            "-9223372036854775809",
            _HUGE,
            f"1.{_HUGE}",
            f"0.1e{_HUGE}",
            '"\\ud800"',
            '"\\udc00\\ud800"',
            '"\\u0000"',
            '1, "metadata": null',
            '{"fairlead.dev/run": "a", "fairlead.dev/run": 1}',
            '{}, "spec": {}',
            *("[" * depth + "]" * depth for depth in (100, 253, 260, 500, 900, 1020, 100_000)),
            *('{"a":' * depth + "1" + "}" * depth for depth in (100, 253, 260, 500, 1000, 100_000)),
        )
    )
}
JUNK: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**31,
    2**63 - 1,
    -(2**63),
    "",
    "x",
    "x" * 100_000,
    "\x00",
    "\ud83d\ude00 ü",
    "9" * 4301,
    "In",
    "Exists",
    "NoExecute",
    names.RUN,
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
    {"a": None},
    {"key": "spot"},
    {names.RUN: "r"},
    {REQUIRED: {"nodeSelectorTerms": [{}]}},
    *RAW,
)
NEW_KEYS = (
    *("", "~", "/", "~0~1", "a/b~c", "-", "0", "\x00", "x" * 10_000, "__proto__", "\ud83d\ude00"),
    *("metadata", "spec", "labels", "tolerations", "affinity", "nodeSelector", names.RUN),
)
ACTIONS = ("delete", "replace", "duplicate", "retype", "rename", "add", "swap")


class Mutation(NamedTuple):
    """One change: which, at which node (counted from the root, and around), and with what."""

    action: str
    node: int
    value: Any


mutations = st.builds(Mutation, one(*ACTIONS), st.integers(0, 9999), st.integers(0, 9999))


def mutated(review: Json, mutation: Mutation) -> Json:
    result = copy.deepcopy(review)
    found = list(_nodes(result))
    holder, key = found[mutation.node % len(found)]
    value = copy.deepcopy(JUNK[mutation.value % len(JUNK)])
    new_key = NEW_KEYS[mutation.value % len(NEW_KEYS)]
    match mutation.action:
        case "delete":
            del holder[key]
        case "replace":
            holder[key] = value
        case "duplicate" if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case "duplicate":
            holder[new_key] = copy.deepcopy(holder[key])
        case "retype":
            holder[key] = _retyped(holder[key])
        case "rename" if isinstance(holder, dict):
            holder[new_key] = holder.pop(key)
        case "swap":
            other, other_key = found[mutation.value % len(found)]
            # A node that is put inside itself would have no end.
            here, there = copy.deepcopy(holder[key]), copy.deepcopy(other[other_key])
            other[other_key] = here
            holder[key] = there
        case _ if isinstance(holder[key], dict):
            holder[key][new_key] = value
        case _ if isinstance(holder[key], list):
            holder[key].append(value)
        case _:
            holder[key] = value
    return result


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    members: Any = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, member in members:
        yield value, key
        yield from _nodes(member)


def _retyped(value: Any) -> Any:
    match value:
        case dict():
            return list(value.values())
        case list():
            return {str(at): member for at, member in enumerate(value)}
        case str():
            return [value]
        case None:
            return {}
    return str(value)


def encoded(review: Json) -> bytes:
    """The JSON, with RAW texts in their places."""
    text = json.dumps(review)
    if "@raw " in text:
        for placeholder, raw in RAW.items():
            text = text.replace(f'"{placeholder}"', raw)
    return text.encode()


BYTE_ACTIONS = (
    "truncate",
    "flip",
    "insert",
    "overwrite",
    "cut",
    "repeat",
    "join",
    "front",
    "gzip",
    "utf-16",
    "empty",
)
BYTES = (
    *(b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"', b"\\", b"\\u", b"{", b"}"),
    *(b"[", b"]", b",", b":", b" ", b"\n", b"null", b"1e999", b"-", b"\x1f\x8b", b"/**/", b"'"),
)

byte_mutations = st.builds(
    Mutation, one(*BYTE_ACTIONS), st.integers(0, 2**20), st.integers(0, 2**16)
)


def damaged(body: bytes, mutation: Mutation) -> bytes:
    if not body:
        return body
    at = mutation.node % len(body)
    piece = BYTES[mutation.value % len(BYTES)]
    match mutation.action:
        case "truncate":
            return body[:at]
        case "flip":
            return body[:at] + bytes([body[at] ^ 1 << mutation.value % 8]) + body[at + 1 :]
        case "insert":
            return body[:at] + piece + body[at:]
        case "overwrite":
            return body[:at] + piece + body[at + len(piece) :]
        case "cut":
            return body[:at] + body[at + 1 + mutation.value % 40 :]
        case "repeat":
            return body[:at] + body[at : at + 1 + mutation.value % 400] * 2 + body[at:]
        case "join":
            return body + piece + body
        case "front":
            return piece + body
        case "gzip":
            return gzip.compress(body, mtime=0)
        case "utf-16":
            return body.decode("utf-8", "replace").encode("utf-16")
    return b""
