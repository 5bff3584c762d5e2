"""`python -m tests.bench.comparison`: how long `fairlead diff` takes for ten thousand pods.

The whole command as a process of its own, from files to the answer, on nodes. Seconds of the clock,
and of the processor, which a busy machine makes no longer. Prints; judges nothing.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from tests.bench import pods
from tests.bench.policies import files
from tests.bench.reviews import NAMESPACE
from tests.objects import an_object
from webhook import names

Json = dict[str, Any]

_POLICIES: Final = (10, 100, 1000)
_MATCHING: Final = 2
_BYTES: Final = 5_000
# How many kinds of pods there are that policies tell apart.
_KINDS: Final = (1, 100, 10_000)
_POOLS: Final = ("experiments", "builds", "notebooks", "services")


def manifests(count: int, kinds: int, by: str = "placement") -> list[Json]:
    """Pods of as many runs as there are pods; `kinds` of them differ by their own placement.

    Or, with `label`, by values that no policy names of a label that policies select by; or, with
    `named`, by which of a thousand policies match: each kind meets another combination.
    """
    model = pods.manifest(_BYTES)
    found = []
    for at in range(count):
        pod = copy.deepcopy(model)
        pod["metadata"] |= {"name": f"p-{at}", "namespace": NAMESPACE}
        pod["metadata"]["labels"] = {**model["metadata"]["labels"], names.RUN: f"run-{at}"}
        labels = pod["metadata"]["labels"]
        if at % kinds and by == "label":
            labels["project"] = f"shard-{at % kinds}"
        elif at % kinds and by == "named":
            hundreds, rest = divmod(at % kinds, 100)
            labels |= {"project": f"project-{rest}8", f"legacy-{hundreds}9": ""}
        elif at % kinds:
            pod["spec"]["nodeSelector"] = {"shard": str(at % kinds)}
        found.append(pod)
    return found


def nodes(count: int) -> list[Json]:
    """Nodes of some pools, half of them spot."""
    return [
        an_object(
            "v1",
            "Node",
            {
                "name": f"n-{at}",
                "labels": {
                    "pool": _POOLS[at % len(_POOLS)],
                    "kubernetes.io/arch": "amd64",
                    "example.com/capacity": "spot" if at % 2 else "on-demand",
                },
            },
        )
        for at in range(count)
    ]


def changed(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """The set in which what constrained to spot prevents it."""
    return {name: text.replace(b'"Constrain"', b'"Prevent"') for name, text in contents.items()}


def write(folder: Path, contents: Mapping[str, bytes]) -> Path:
    """The files of a set in a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in contents.items():
        (folder / Path(name).name).write_bytes(text)
    return folder


def whole(
    folder: Path, policies: int, found: Sequence[Json], count: int
) -> tuple[float, float, Json]:
    """Seconds of the whole command, by clock and by processor, and what it found."""
    old = write(folder / f"old-{policies}", files(policies, _MATCHING))
    new = write(folder / f"new-{policies}", changed(files(policies, _MATCHING)))
    listed = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": list(found)})
    (folder / "pods.json").write_bytes(listed)
    (folder / "nodes.json").write_bytes(orjson.dumps({"kind": "List", "items": nodes(count)}))
    arguments = [str(old), str(new), "--pods", str(folder / "pods.json")]
    arguments += ["--nodes", str(folder / "nodes.json"), "-o", "json"]
    started, worked = time.perf_counter(), _worked()
    done = subprocess.run(
        [str(Path(sys.executable).parent / "fairlead"), "diff", *arguments],
        capture_output=True,
        check=False,
    )
    seconds, worked = time.perf_counter() - started, _worked() - worked
    if done.returncode != 1:
        raise SystemExit(done.stderr.decode())
    summed: Json = json.loads(done.stdout)["pods"]
    return seconds, worked, summed


def _worked() -> float:
    """Seconds that processes of ours have computed that are over."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure, and print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--by", choices=("placement", "label", "named"), default="placement")
    options = parser.parse_args()
    print(f"{options.pods} pods of {_BYTES} bytes, kinds by {options.by}, {options.nodes} nodes")
    print("policies  kinds of pods  by clock  by processor  differing")
    for policies in _POLICIES:
        for kinds in _KINDS:
            found = manifests(options.pods, min(kinds, options.pods), options.by)
            with tempfile.TemporaryDirectory() as folder:
                seconds, worked, summed = whole(Path(folder), policies, found, options.nodes)
            print(
                f"{policies:8}  {kinds:13}  {seconds:6.2f} s  {worked:10.2f} s"
                f"  {summed['differing']:9}"
            )


if __name__ == "__main__":
    main()
