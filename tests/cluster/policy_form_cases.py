"""For each form of a text that policies are judged by in words: texts without it, and with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.cluster.policy_rule_cases import a_class, a_policy, an_exception
from tests.cluster.run_placement_cases import near, spread
from webhook.policy.model import PARTS

Json = dict[str, Any]


class Form(NamedTuple):
    """Where a text stands, one that is refused, and one that is taken.

    words: what only the message of the text's form has.
    """

    field: str
    broken: Json
    kept: Json
    value: str
    words: str


_MOMENT = "is not a valid timestamp"
_POLICY = "is not a policy's name"
_OBJECT = "is not an object's name"
_VALUE = "is not a label value"
_KEY = "is not a label key"
_MOMENTS: Mapping[str, str] = {
    "2026-12-01": "2026-12-01T18:00:00Z",
    "2026-12-01 18:00": "2099-12-31T23:59:59+01:00",
    "2026-12-01T18:00:00.123456789+01:00": "2026-01-31T00:00:00-23:59",
    "2026-12-01t18:00:00z": "2026-04-30T00:00:00Z",
    "2026-12-01T18:00:00": "2026-07-29T00:00:00Z",
    "2026-12-01T24:00:00Z": "2026-12-01T00:00:00Z",
    "2026-02-29T18:00:00Z": "2028-02-29T18:00:00Z",
    "2026-04-31T18:00:00Z": "2000-02-29T18:00:00Z",
    "1999-12-31T18:00:00Z": "2026-02-28T18:00:00Z",
    "x" * 253: "2026-10-10T10:10:10Z",
}


def _exceptions() -> Iterator[Form]:
    for wrong, right in _MOMENTS.items():
        broken, kept = an_exception(until=wrong), an_exception(until=right)
        yield Form("spec.until", broken, kept, wrong, _MOMENT)
    for blank in (" ", "\n\t"):
        broken, kept = an_exception(reason=blank), an_exception(reason=f"{blank}x{blank}")
        yield Form("spec.reason", broken, kept, blank, "is blank")
    for wrong, right in {"spot-*": "*", "Spot": "spot.a-b", "a..b": "0"}.items():
        broken, kept = an_exception(policies=[wrong]), an_exception(policies=[right])
        yield Form("spec.policies[0]", broken, kept, wrong, _POLICY)


def _classes() -> Iterator[Form]:
    broken, kept = a_class(complementOf="On_Demand"), a_class(complementOf="on-demand")
    yield Form("spec.complementOf", broken, kept, "On_Demand", _OBJECT)
    broken, kept = (a_class(nodes=[{"labels": {"a": value}}]) for value in ("b c", ""))
    yield Form("spec.nodes[0].labels[a]", broken, kept, "b c", _VALUE)
    nodes = [{"labels": {"a": "b"}}]
    ill = {"condition": "GpuHealthy", "status": "False"}
    broken, kept = (
        a_class(nodes=nodes, unhealthy=[{**ill, "lasts": text}]) for text in ("25h", "24h")
    )
    yield Form("spec.unhealthy[0].lasts", broken, kept, "25h", "duration of 0s")
    broken, kept = (a_class(nodes=nodes, lostAfter=text) for text in ("59s", "1m"))
    yield Form("spec.lostAfter", broken, kept, "59s", "duration of 1m")


# A field of a fallback, a duration that it refuses, and one that it takes.
_DURATIONS = (
    ("within", "59s", "1m"),
    ("afterPending", "1d", "24h"),
    ("afterPending", "0s", "1s"),
    ("returnAfter", "25h", "1h30m"),
)


def _fallback(field: str, text: str) -> Json:
    rule = {"afterDisruptions": 2, field: text}
    return {"capacity": [{"class": "a", "mode": "Constrain", "fallback": rule}]}


def _in_a_placement() -> Iterator[tuple[str, Json, Json, str, str]]:
    for field in ("nodeSelector", "labels"):
        yield f"{field}[a]", {field: {"a": "b c"}}, {field: {"a": "B_c"}}, "b c", _VALUE
    for field in ("priorityClassName", "runtimeClassName"):
        yield field, {field: "High"}, {field: "high.a"}, "High", _OBJECT
    wrong, right = ({"capacity": [{"class": name, "mode": "Allow"}]} for name in ("a b", "a-b"))
    yield "capacity[0].class", wrong, right, "a b", _OBJECT
    for field, bad, good in _DURATIONS:
        at = f"capacity[0].fallback.{field}"
        words = "duration of 1m" if field == "within" else "duration of 1s"
        yield at, _fallback(field, bad), _fallback(field, good), bad, words
    wrong, right = ({"tolerations": [{"key": key, "operator": "Exists"}]} for key in ("A/b", "a/B"))
    yield "tolerations[0].key", wrong, right, "A/b", _KEY
    wrong, right = spread(topologyKey="a b"), spread(topologyKey="a/b")
    yield "topologySpreadConstraints[0].topologyKey", wrong, right, "a b", _KEY
    at = "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"
    yield at, near(topologyKey="-a"), near(topologyKey="x" * 63), "-a", _KEY


def _policies() -> Iterator[Form]:
    for part in PARTS:
        for field, wrong, right, value, words in _in_a_placement():
            broken, kept = a_policy(**{part: wrong}), a_policy(**{part: right})
            yield Form(f"spec.{part}.{field}", broken, kept, value, words)


FORMS: list[Form] = [*_exceptions(), *_classes(), *_policies()]
