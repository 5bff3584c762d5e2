"""`python -m tests.bench.large_pods CHECKOUT`: the cost of large pods, beside another checkout.

Prints the table of docs/benchmarks.md, "Large pods". Both checkouts decide on the same
reviews in processes of their own, in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from tests.bench import pods, reviews
from tests.bench.against import HERE, in_turns
from tests.bench.policies import files
from tests.objects import required_affinity

Json = dict[str, Any]

# Runs in either checkout: prints [milliseconds, whether the pod is rejected] for each set of
# policies and each review of the file.
_MEASURE: Final = """
import json, sys, time
from tests.bench import engine
from webhook.policy.load import load
asked = json.load(open(sys.argv[1]))
sets = [load({n: t.encode() for n, t in some.items()}).policies for some in asked["sets"]]
found = []
for text in asked["reviews"]:
    body = text.encode()
    for policies in sets:
        times = []
        for _ in range(4):
            began = time.perf_counter()
            try:
                rejected = b'"allowed":false' in engine.answer(body, policies)
            except Exception:
                rejected = True
            times.append((time.perf_counter() - began) * 1000)
        found.append([min(times), rejected])
print(json.dumps(found))
"""


def large_pods() -> dict[str, Json]:
    """Each row's pod, by what the table calls it."""
    return {
        "a small worker": pods.manifest(2_000),
        "20 terms, four requirements each, ten values each": _with_terms(20, 4, 10),
        "one term, 5,000 host names": _with_terms(1, 1, 5_000),
        "100 terms, four requirements each": _with_terms(100, 4, 1),
        "1,024 terms": _with_terms(1_024, 1, 1),
        "1,024 terms, 128 values each that differ in the last": _with_terms(1_024, 1, 128),
        "one term, 900,000 values": _with_terms(1, 1, 900_000),
        "20,000 environment variables, applied from a file": _with_variables(20_000),
    }


def policy_sets() -> list[dict[str, str]]:
    """Three policies, one of which constrains to a class; with a fourth, to eight shapes."""
    three = {name: text.decode() for name, text in files(3, 3).items()}
    shapes = [{"labels": {f"example.com/shape-{n}": "true"}} for n in range(8)]
    head = {"apiVersion": "fairlead.dev/v1alpha1"}
    eight: list[Json] = [
        {
            **head,
            "kind": "CapacityClass",
            "metadata": {"name": "shapes"},
            "spec": {"nodes": shapes},
        },
        {
            **head,
            "kind": "PlacementPolicy",
            "metadata": {"name": "to-shapes"},
            "spec": {"overrides": {"capacity": [{"class": "shapes", "mode": "Constrain"}]}},
        },
    ]
    more = {f"{each['metadata']['name']}.yaml": json.dumps(each) for each in eight}
    return [three, three | more]


def _with_terms(terms: int, requirements: int, values: int) -> Json:
    """A pod with required node affinity. The values of two terms differ in the last one only."""
    pod = pods.manifest(2_000)
    pod["spec"]["affinity"] = required_affinity(
        *[
            {"matchExpressions": [_requirement(r, values, t) for r in range(requirements)]}
            for t in range(terms)
        ]
    )
    return pod


def _requirement(number: int, values: int, term: int) -> Json:
    listed = [*(f"node-{n:06}" for n in range(values - 1)), f"last-{term}"]
    return {"key": f"example.com/key-{number}", "operator": "In", "values": listed}


def _with_variables(count: int) -> Json:
    """A pod with variables that `kubectl apply` wrote down in an annotation once more."""
    pod = pods.manifest(2_000)
    variables = [{"name": f"V{n}", "value": ""} for n in range(count)]
    pod["spec"]["containers"][0]["env"] += variables
    applied = orjson.dumps(pod).decode()
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    return pod


def _cell(found: Sequence[list[Any]]) -> str:
    """The median time in ms of all rounds, and whether the pod is rejected."""
    middle = statistics.median(milliseconds for milliseconds, _ in found)
    shown = f"{middle:.1f}" if middle < 1 else f"{middle:.0f}"
    return f"rejected: {shown}" if found[0][1] else shown


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of the version before")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = large_pods()
    bodies = [reviews.review(reviews.as_sent(pod), "one").decode() for pod in found.values()]
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "asked.json")
        asked.write_text(json.dumps({"sets": policy_sets(), "reviews": bodies}))
        rounds = [*in_turns(options.checkout, options.rounds, _MEASURE, str(asked))]
    print("| pod | before, ms | now, ms |\n|---|---|---|")
    columns = [
        [_cell(some) for some in zip(*(each[arm] for each in rounds), strict=True)]
        for arm in (options.checkout, HERE)
    ]
    for at, name in enumerate(found):
        cells = [f"{column[2 * at]} ({column[2 * at + 1]})" for column in columns]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
