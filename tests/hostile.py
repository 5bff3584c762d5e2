"""What whoever may patch a pod can write into its annotations, and into every key that is read.

The one table: a test of anything that reads pods of others goes through all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from webhook import names
from webhook.placement.fields import OF_PODS
from webhook.sources import SHIPPED

# 256 KiB is the most that the API server stores in all annotations of an object.
LONG: Final = 262_144 - 512
DIGITS: Final = "9" * 5000
DEEP: Final = 900


def nested(levels: int, opening: str = "[", closing: str = "]", inner: str = "1") -> str:
    """A value below so many levels of JSON."""
    return opening * levels + inner + closing * levels


def deep(levels: int = DEEP) -> str:
    return nested(levels, '{"a":', "}")


# As JSON text: a value of any type where another one is expected.
VALUES: Final[dict[str, str]] = {
    "null": "null",
    "true": "true",
    "zero": "0",
    "negative": "-1",
    "fraction": "1.5",
    "over 64 bits": "18446744073709551616",
    "5,000 digits": DIGITS,
    "beyond floats": "1e400",
    "NaN": "NaN",
    "text": '"x"',
    "long text": json.dumps("x" * 100_000),
    "control characters": json.dumps("\x1b[2J\u202e\n::error::\x00"),
    "lone surrogate": '"\\ud800"',
    "list": "[]",
    "list of nulls": "[null]",
    "list of lists": "[[[]]]",
    "object": "{}",
    "object of objects": '{"a": {"b": {}}}',
    "empty key": '{"": ""}',
    "deep list": nested(DEEP),
    "deep object": deep(),
    "10,000 keys": json.dumps({f"k{at}": [f"f{at}"] for at in range(10_000)}),
}
TIMES: Final[dict[str, str]] = {
    "year 0": "0000-01-01T00:00:00Z",
    "year 1": "0001-01-01T00:00:00+23:59",
    "year 9999": "9999-12-31T23:59:59-23:59",
    "last moment": "9999-12-31T23:59:59.999999Z",
    "year 10000": "10000-01-01T00:00:00Z",
    "no zone": "2026-11-28T12:00:00",
    "week": "2026-W48-6",
    "date": "2026-11-28",
    "leap second": "2026-12-31T23:59:60Z",
    "no time": "now",
}
STAMP: Final = {"set": '"12ab"', "policies": '{"p": ["tolerations[x]"]}', "exceptions": "{}"}
STAMP_FIELDS: Final = (*STAMP, "leftAlone", "fallback", "newer")
CREDITS: Final = (
    "",
    "[",
    "]",
    "newer",
    "newer[x]",
    "nodeSelector[",
    "nodeSelector[]",
    "capacity[",
    "capacity[none]",
    "tolerations",
    "affinity.newer",
    "x" * 10_000,
    "\x1b[2J",
)
EVENT: Final = {"class": '"spot"', "time": '"2026-11-28T12:00:00Z"', "waitedSeconds": "600"}
POD_FIELDS: Final = (
    *(field.name for field in OF_PODS if field.holder == "spec"),
    *("os", "containers"),
)
AFFINITY: Final = (
    '{"nodeAffinity": %s}',
    '{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": %s}}',
    (
        '{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": '
        '{"nodeSelectorTerms": [{"matchExpressions": [{"key": %s, "operator": %s}]}]}}}'
    ),
    '{"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [%s]}}',
)


def written(members: dict[str, str]) -> str:
    """A JSON object of members that are JSON text."""
    return f"{{{', '.join(f'{json.dumps(key)}: {value}' for key, value in members.items())}}}"


def _plain() -> Iterator[tuple[str, str]]:
    yield "empty", ""
    yield "blank", " \n\t"
    yield "100,000 brackets", "[" * 100_000
    yield "100,000 levels", nested(100_000)
    yield "100,000 objects", '{"a":' * 100_000
    yield "long", "x" * LONG
    yield "commas", "," * LONG
    yield "many names", ",".join(f"n{at}" for at in range(LONG // 8))
    yield "many requests", ",".join(f"c{at}=Allow" for at in range(LONG // 16))
    yield "odd request", "spot=Prefer:999999,=,:,spot==,gpu"
    yield "equal keys", '{"set": "a", "set": {}, "policies": {}, "policies": []}'
    yield "digits", DIGITS
    yield from VALUES.items()
    yield from TIMES.items()


def _stamps() -> Iterator[tuple[str, str]]:
    for name, value in VALUES.items():
        for field in STAMP_FIELDS:
            yield f"stamp: {field} is {name}", written({**STAMP, field: value})
        for of in ("policies", "exceptions", "fallback"):
            yield f"stamp: {of} of {name}", written({**STAMP, of: f'{{"spot": {value}}}'})
        yield f"stamp: a field {name}", written({**STAMP, "policies": f'{{"p": [{value}]}}'})
    for credit in CREDITS:
        policies = json.dumps({"p": [credit], credit: [credit]})
        yield f"stamp: credit {credit[:20]!r}", written({**STAMP, "policies": policies})
    for wait in (10**9, 10**18, -(10**18), 86_400):
        yield f"stamp: waits {wait}", written({**STAMP, "fallback": f'{{"spot": {wait}}}'})


def _histories() -> Iterator[tuple[str, str]]:
    for name, value in {**VALUES, **{n: json.dumps(t) for n, t in TIMES.items()}}.items():
        whole = {"asOf": '"2026-11-28T12:00:00Z"', "events": f"[{written(EVENT)}]"}
        for field in (*whole, "newer"):
            yield f"history: {field} is {name}", written({**whole, field: value})
        for field in EVENT:
            event = written({**EVENT, field: value})
            yield (
                f"history: {field} of an event is {name}",
                written({**whole, "events": f"[{event}]"}),
            )
    yield (
        "history: many events",
        written(
            {"asOf": '"2026-11-28T12:00:00Z"', "events": f"[{','.join([written(EVENT)] * 3000)}]"}
        ),
    )


def _files() -> Iterator[tuple[str, str]]:
    for name, value in VALUES.items():
        for field in POD_FIELDS:
            yield f"file: {field} is {name}", written({"spec": written({field: value})})
            yield f"file: {field} of {name}", written({"spec": written({field: f"[{value}]"})})
        for at, form in enumerate(AFFINITY):
            affinity = form.replace("%s", value)
            yield (
                f"file: affinity {at} of {name}",
                written({"spec": written({"affinity": affinity})}),
            )
        for field in ("metadata", "spec"):
            yield f"file: {field} is {name}", written({field: value})
        for field in ("labels", "annotations", "name"):
            yield f"file: its {field} {name}", written({"metadata": written({field: value})})


# Without a form.
PLAIN: Final[dict[str, str]] = dict(_plain())
TEXTS: Final[dict[str, str]] = dict((*PLAIN.items(), *_stamps(), *_histories(), *_files()))
# Every key that the product names is tried as an annotation, also if it is meant as a label: so a
# future one is among them. Beside them the annotations that the systems' files read.
KEYS: Final = sorted(
    {
        value
        for name, value in vars(names).items()
        if name.isupper() and isinstance(value, str) and "/" in value.rstrip("/")
    }
    | SHIPPED.read_annotations
)
# The keys for the texts of each form: its own, and one that wants another form.
_OF_FORM: Final = {
    "stamp": (names.PLACEMENT, names.SETTINGS),
    "history": (names.HISTORY, names.PLACEMENT),
    "file": (names.LAST_APPLIED,),
}


def cases() -> Iterator[tuple[str, dict[str, str]]]:
    """Annotations of one pod, with a name for each case: every text in every key that it may fit.

    A text without a form fits every key.
    """
    for name, text in TEXTS.items():
        for key in _OF_FORM.get(name.partition(":")[0], KEYS):
            yield f"{key}: {name}", {key: text}
