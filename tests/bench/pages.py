"""`python -m tests.bench.pages`: how soon the pages of a large cluster answer.

1,000 policies, 100 Runs, 10,000 pods on 500 nodes in one API server, and `fairlead ui cluster` as
a process. The first answer of a page lists what it shows; later ones have a watch. Prints Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.bench import policy_arena
from tests.bench.document import circumstances
from tests.bench.reviews import NAMESPACE
from tests.objects import an_object
from tests.ui import served_pages
from webhook import names
from webhook.progress import Lines
from webhook.sandbox.api import Api, definitions, install_definitions
from webhook.sandbox.binaries import obtain_binaries
from webhook.sandbox.control_plane import ControlPlane, Settings

Json = dict[str, Any]

POLICIES: Final = 1_000
RUNS: Final = 100
PODS_A_RUN: Final = 100
NODES: Final = 500
_REPLICAS: Final = {"master": {}, "worker": {"count": PODS_A_RUN - 1}}
_CONTAINER: Final = {"name": "main", "image": "example.invalid/train:1"}
_RUN_SPEC: Final = {
    "framework": "pytorch",
    "replicas": _REPLICAS,
    "template": {"spec": {"containers": [_CONTAINER]}},
}


def fill(plane: ControlPlane) -> None:
    """Create everything, many at a time."""
    api = plane.api
    for name in ("default", NAMESPACE):
        if name == NAMESPACE:
            plane.create_namespace(name)
        account = an_object("v1", "ServiceAccount", "default")
        api.create(f"/api/v1/namespaces/{name}/serviceaccounts", account)
    for each in policy_arena.documents(POLICIES):
        api.create(policy_arena.collection(each["kind"]), each)
    runs = f"/apis/{names.API_VERSION}/namespaces/{NAMESPACE}/{names.RUNS}"
    with ThreadPoolExecutor(8) as pool:
        nodes = (an_object("v1", "Node", _node(at), {}) for at in range(NODES))
        list(pool.map(lambda each: api.create("/api/v1/nodes", each), nodes))
        for at in range(RUNS):
            name = f"run-{at:03}"
            made = api.create(runs, an_object(names.API_VERSION, "Run", name, _RUN_SPEC))
            list(pool.map(lambda pod: _create_pod(api, pod), _pods(name, made, at)))


def _node(at: int) -> Json:
    return {"name": f"node-{at:03}", "labels": {"pool": f"pool-{at % 20}"}}


def _pods(run: str, made: Json, number: int) -> Iterator[Json]:
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": names.API_VERSION, "kind": "Run", "name": run, "uid": uid}
    for at in range(PODS_A_RUN):
        role, index = ("worker", at - 1) if at else ("master", 0)
        metadata = {
            "name": f"{run}-{role}-{index}",
            "labels": {
                names.MANAGED_BY: names.MANAGER,
                names.RUN: run,
                names.RUN_UID: uid,
                names.ROLE: role,
                names.REPLICA_INDEX: str(index),
            },
            "annotations": {names.ATTEMPT: "0"},
            "ownerReferences": [{**owner, "controller": True}],
        }
        node = f"node-{(number * PODS_A_RUN + at) % NODES:03}"
        yield an_object("v1", "Pod", metadata, {"containers": [_CONTAINER], "nodeName": node})


def _create_pod(api: Api, pod: Json) -> None:
    api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pod)


def main() -> None:
    """Print a row for each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    progress = Lines(sys.stderr)
    components = ("etcd", "kube-apiserver")
    binaries = obtain_binaries(components, progress)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(components=components)
        with ControlPlane(Path(folder) / "state", binaries, settings) as plane:
            install_definitions(plane.api, definitions())
            with progress.step("creating what the pages show", about=90):
                fill(plane)
            with served_pages.page("cluster", "--kubeconfig", str(plane.kubeconfig)) as served:
                served.enter()
                print(circumstances(rounds))
                print("\n| page | first, ms | later, ms | KB |\n|---|---|---|---|")
                for path in (
                    "/runs",
                    "/runs?words=run-07&page=1",
                    f"/runs/{NAMESPACE}/run-042",
                    f"/runs/{NAMESPACE}/run-042/worker/7",
                    "/cluster",
                    f"/pods/{NAMESPACE}/run-042-worker-7",
                    "/findings",
                ):
                    print(_row(served, path, rounds))


def _row(served: served_pages.Page, path: str, rounds: int) -> str:
    times = []
    for _ in range(rounds + 1):
        began = time.monotonic()
        answer = served.ask("GET", path)
        times.append((time.monotonic() - began) * 1000)
        assert answer.status == 200, answer.text
    first, *later = times
    size = len(answer.text) / 1000
    return f"| `{path}` | {first:.0f} | {statistics.median(later):.0f} | {size:.0f} |"


if __name__ == "__main__":
    main()
