"""What breaks a rule of our kinds, and what just keeps it: the files of golden/rules.

In them `x{253}` is a text of 253 x, `65 items: v` a list of 65 times v, in which {n} is the number,
and `65 keys: v` a mapping from k0 to k64.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.fast_yaml import load_yaml
from tests.objects import an_object
from tests.run.whole_runs import a_run
from webhook import names
from webhook.crd.rules import TOO_DEEP
from webhook.policy.crd.definitions import RESOURCES
from webhook.policy.model import PARTS

Json = dict[str, Any]
FOLDER = Path(__file__).parents[1] / "golden" / "rules"
EXCEPTION: Json = {
    "policies": ["mine"],
    "match": {"roles": ["worker"]},
    "until": "2026-12-01T18:00:00Z",
    "reason": "Anna looks for a leak.",
}
# Words of the rules in TOO_DEEP, which are left to the controller for a single replica.
LEFT_TO_THE_CONTROLLER = (
    "one value or more, Exists",
    "Gt and Lt exactly one",
    "term without expressions",
)
assert len(TOO_DEEP) == len(LEFT_TO_THE_CONTROLLER)


class Case(NamedTuple):
    """An object that breaks one rule and no other, and one that just keeps it.

    words: what only that rule's message has. value: the refused text, if the message has it.
    """

    broken: Json
    kept: Json
    field: str
    words: str
    value: str = ""


def a_policy(**spec: Any) -> Json:
    """A policy that places, unless it says itself what it does."""
    if not any(part in spec for part in PARTS):
        spec["defaults"] = {"nodeSelector": {"pool": "a"}}
    return mine(names.POLICY_KIND, spec)


def a_class(**spec: Any) -> Json:
    return mine(names.CLASS_KIND, spec)


def an_exception(**spec: Any) -> Json:
    return mine(names.EXCEPTION_KIND, {**EXCEPTION, **spec})


def mine(kind: str, spec: Mapping[str, Any], **metadata: Any) -> Json:
    return an_object(names.API_VERSION, kind, {"name": "mine", **metadata}, dict(spec))


def path_of(kind: str) -> str:
    """Where objects of a kind are created."""
    return f"/apis/{names.API_VERSION}/{RESOURCES[kind].partition('.')[0]}"


def _rows(file: str) -> list[Json]:
    rows: list[Json] = _expanded(load_yaml((FOLDER / f"{file}.yaml").read_text()))
    return rows


def _expanded(value: Any) -> Any:
    match value:
        case {"65 items": item}:
            texts = (json.dumps(_expanded(item)).replace("{n}", str(n)) for n in range(65))
            return [json.loads(text) for text in texts]
        case {"65 keys": item}:
            return {f"k{n}": item for n in range(65)}
        case dict():
            return {_expanded(key): _expanded(item) for key, item in value.items()}
        case list():
            return [_expanded(item) for item in value]
        case str():
            return re.sub(r"(\w)\{(\d+)\}", lambda found: found[1] * int(found[2]), value)
    return value


def _policies() -> Iterator[Case]:
    for row in _rows("policies"):
        is_exception = row["kind"] == names.EXCEPTION_KIND
        specs = ({**(EXCEPTION if is_exception else {}), **row[key]} for key in ("broken", "kept"))
        broken, kept = (mine(row["kind"], spec) for spec in specs)
        broken["metadata"] = row.get("metadata", broken["metadata"])
        yield Case(broken, kept, row["field"], row["words"], row.get("value", ""))
    for row in PLACEMENTS:
        for part in PARTS:
            broken, kept = (a_policy(**{part: row[key]}) for key in ("broken", "kept"))
            field = f"spec.{part}.{row['at']}"
            yield Case(broken, kept, field, row["words"], row.get("value", ""))


def _by_schema() -> Iterator[tuple[Json, str, str]]:
    for row in _rows("schema"):
        kind, spec = row["kind"], row["broken"]
        if kind == names.POLICY_KIND:
            whole = a_policy(**spec)
        elif row.get("bare"):
            whole = mine(kind, spec)
        else:
            whole = mine(kind, {**(EXCEPTION if kind == names.EXCEPTION_KIND else {}), **spec})
        yield whole, row["field"], row["words"]


def _runs() -> Iterator[Case]:
    for row in _rows("runs"):
        broken, kept = a_run(**row["broken"]), a_run(**row["kept"])
        if "names" in row:
            broken["metadata"]["name"], kept["metadata"]["name"] = row["names"]
        yield Case(broken, kept, row["field"], row["words"])
    for row in PLACEMENTS:
        if row.get("of") != "policies":
            for at, layer in _LAYERS.items():
                broken, kept = (a_run(**layer(row[key])) for key in ("broken", "kept"))
                yield Case(broken, kept, f"{at}.environment.{row['at']}", row["words"])


_LAYERS: Mapping[str, Callable[[Json], Json]] = {
    "spec": lambda each: {"environment": each},
    "spec.replicas[worker]": lambda each: {"replicas": {"worker": {"environment": each}}},
    "spec.replicas[worker].byIndex[0]": lambda each: {
        "replicas": {"worker": {"byIndex": [{"index": 0, "environment": each}]}}
    },
}
PLACEMENTS = _rows("placements")
CASES: list[Case] = [*_policies()]
# What the schema refuses by itself: the object, the field, and the API server's words.
BY_SCHEMA: list[tuple[Json, str, str]] = [*_by_schema()]
_RUNS = [*_runs()]
# Cases of Runs that the API server takes, and the controller refuses.
LEFT = [c for c in _RUNS if "byIndex[0].env" in c.field and c.words in LEFT_TO_THE_CONTROLLER]
RUN_CASES = [case for case in _RUNS if case not in LEFT]
