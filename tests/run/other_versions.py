"""Documents of Runs as a later or an earlier version would write them, made from the schema."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.run.whole_runs import ALL, a_run
from webhook.run.json_schema import schema

Json = dict[str, Any]
Path = tuple[str | int, ...]

SCHEMA = schema()
DEFINITIONS = SCHEMA["$defs"]
# A name and a value that no version has.
FIELD, WORD = "laterField", "LaterWord"
VALUE: Json = {"of": ["a", {"later": True}]}

_IN = {"key": "team", "operator": "In", "values": ["vision"]}
_NEAR = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [_IN]}}
_REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [_NEAR]}
RUNS = [*ALL, a_run(environment={"affinity": {"podAffinity": _REQUIRED}})]

# A status in which each field is set, of a healthy run of three workers at 20:15:00.
STATUS: Json = {
    "phase": "Running",
    "message": "3 of 3 replicas run",
    "observedGeneration": 1,
    "startTime": "2026-11-21T20:00:00Z",
    "replicasReady": "3/3",
    "restarts": 2,
    "disruptions": 1,
    "address": "http://mnist",
    "sshSecret": "mnist-ssh-0a1b2c3d",
    "duration": "1m",
    "replicas": {
        "worker": {
            "desired": 3,
            "active": 3,
            "ready": 3,
            "succeeded": 0,
            "failed": 1,
            "restarts": 2,
            "disruptions": 1,
            "attempt": 2,
            "firstAttempt": 1,
            "countsFrom": 1,
            "succeededIndexes": "",
            "activeIndexes": "0-2",
            "creatingIndexes": "",
            "recreations": 1,
            "nodes": [{"class": "spot", "fallback": [], "nodes": {"a": "0-2"}}],
            "countedUIDs": ["gone"],
            "ending": [{"indexes": "1", "since": "2026-11-21T20:14:00Z", "repeated": True}],
            "countedRestarts": {"gone": 1},
            "recovering": [
                {
                    "indexes": "1",
                    "failures": 1,
                    "disruptions": 1,
                    "refusals": 0,
                    "waitMilliseconds": 10000,
                    "since": "2026-11-21T20:14:00.000000Z",
                }
            ],
            "history": [
                {
                    "indexes": "1",
                    "asOf": "2026-11-21T20:14:00.000000Z",
                    "events": [
                        {
                            "class": "spot",
                            "time": "2026-11-21T20:14:00.000000Z",
                            "waitedSeconds": 60,
                        }
                    ],
                }
            ],
        }
    },
    "lastFailure": {
        "replica": "mnist-worker-1",
        "node": "a",
        "exitCode": 1,
        "reason": "Error",
        "message": "no data",
        "disruption": False,
        "time": "2026-11-21T20:14:00Z",
    },
    "incidents": [
        {
            "cause": "Failure",
            "reason": "Error",
            "message": "worker-1 exited with 1",
            "replica": "mnist-worker-1",
            "node": "a",
            "class": "spot",
            "otherNodes": ["b"],
            "began": "2026-11-21T20:14:00.000000Z",
            "decided": "2026-11-21T20:14:00.000000Z",
            "ended": "2026-11-21T20:14:00.000000Z",
            "failures": {"worker": 1},
            "permanent": False,
            "collateral": 0,
            "secondsLost": 30,
        }
    ],
    "gang": {
        "state": "Whole",
        "since": "2026-11-21T20:01:00.000000Z",
        "tries": 2,
        "notBefore": "2026-11-21T20:00:30.000000Z",
        "lacked": "mnist-worker-1: 0/2 nodes are available",
        "heldSeconds": 60,
        "priority": 10,
        "waited": [
            {
                "role": "worker",
                "indexes": "1",
                "class": "spot",
                "since": "2026-11-21T20:00:00Z",
            }
        ],
    },
    "usage": [
        {
            "class": "spot",
            "resource": "replicas",
            "seconds": 600,
            "waitingSeconds": 60,
            "repeatedSeconds": 300,
        }
    ],
    "unseen": 1,
    "repeated": "5m",
    "conditions": [
        {
            "type": "Edited",
            "status": "False",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-11-21T20:00:00Z",
            "reason": "AsCreated",
            "message": "as it was created",
        }
    ],
}
# Only of a run that is over.
OVER = {"completionTime": "2026-11-21T20:15:00Z"}


class Place(NamedTuple):
    """A value in a document. definition: of the object that it is, or has it; words: if closed."""

    path: Path
    definition: str
    words: bool


def places(document: Any, name: str, at: Path = ()) -> Iterator[Place]:
    """Every object of a definition, and every value of a closed list, below one of this name."""
    yield Place(at, name, words=False)
    properties = DEFINITIONS[name]["properties"]
    for field, value in document.items():
        if field in properties:
            yield from _below(value, properties[field], name, (*at, field))


def _below(value: Any, node: Json, name: str, at: Path) -> Iterator[Place]:
    for each in node.get("anyOf", (node,)):
        if "$ref" in each and isinstance(value, dict):
            yield from places(value, each["$ref"].rpartition("/")[2], at)
        elif value in each.get("enum", ()):
            yield Place(at, name, words=True)
        elif isinstance(value, list) and "items" in each:
            for number, item in enumerate(value):
                yield from _below(item, each["items"], name, (*at, number))
        elif isinstance(value, dict):
            further = [*each.get("patternProperties", {}).values()]
            further += [each.get("additionalProperties")]
            for inner in (inner for inner in further if isinstance(inner, dict)):
                for key, item in value.items():
                    yield from _below(item, inner, name, (*at, key))


def closed_lists(name: str) -> set[str]:
    """The fields of a definition, and of all below it, whose words are a closed list."""
    found, seen, todo = set(), {name}, [name]
    while todo:
        current = todo.pop()
        for field, node in DEFINITIONS[current]["properties"].items():
            text = [each for each in _nodes(node) if "enum" in each]
            found |= {f"{current}.{field}" for _ in text}
            inner = {each["$ref"].rpartition("/")[2] for each in _nodes(node) if "$ref" in each}
            todo += inner - seen
            seen |= inner
    return found | {f"{each}." for each in seen}


def _nodes(node: Any) -> Iterator[Json]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(node, list):
        for value in node:
            yield from _nodes(value)


def spec_places() -> dict[str, tuple[Json, Place]]:
    """A spec and a place in it, for each object and closed list of a spec, by its own name."""
    found: dict[str, tuple[Json, Place]] = {}
    for run in RUNS:
        for place in places(run["spec"], "RunSpec"):
            field = str(place.path[-1]) if place.words else ""
            if place.words and isinstance(place.path[-1], int):
                field = next(str(each) for each in reversed(place.path) if isinstance(each, str))
            found.setdefault(f"{place.definition}.{field}", (run["spec"], place))
    return found


def replace_at(document: Json, path: Path, change: Callable[[Any], Any]) -> Json:
    """A copy of the document with another value at the path."""
    whole = {"": copy.deepcopy(document)}
    holder: Any = whole
    for step in ("", *path)[:-1]:
        holder = holder[step]
    last = ("", *path)[-1]
    holder[last] = change(holder[last])
    return whole[""]


def with_field(document: Json, path: Path) -> Json:
    """A copy with a later version's field in the object at the path."""
    return replace_at(document, path, lambda found: {**found, FIELD: copy.deepcopy(VALUE)})


def find(document: Any, path: Path) -> Any:
    """The value at a path."""
    for step in path:
        document = document[step]
    return document


def scalars(document: Any, at: Path = ()) -> Iterator[Path]:
    """The paths of all texts, numbers and booleans."""
    pairs: Any = ()
    if isinstance(document, dict):
        pairs = document.items()
    elif isinstance(document, list):
        pairs = enumerate(document)
    else:
        yield at
    for step, value in pairs:
        yield from scalars(value, (*at, step))
