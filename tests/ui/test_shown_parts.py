"""A window that names the version that it has gets what differs, and no more."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

from tests.cli.run.scripted_cluster import PODS, RUNS, Cluster, pod_object, run_object
from tests.cli.run.scripted_cluster import served as serving
from tests.ui.served_pages import page
from webhook import names
from webhook.times import to_second
from webhook.ui.shown_parts import ShownParts, differences

LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


@given(LINES, LINES)
def test_the_parts_make_the_new_lines_of_the_old_ones(old: list[str], new: list[str]) -> None:
    """The last part first, so that no place moves; equal lines have no part."""
    made = list(old)
    parts = differences(old, new)
    for begin, end, lines in parts:
        made[begin:end] = lines
    assert made == new
    assert bool(parts) == (old != new)
    assert sum(len(lines) for _, _, lines in parts) <= len(new)


def test_one_square_of_a_thousand_is_one_line() -> None:
    """The rest is not sent again."""
    old = [f"<li>{at}</li>" for at in range(1000)]
    new = [*old[:500], "<li>lost</li>", *old[501:]]
    assert differences(old, new) == [(500, 501, ["<li>lost</li>"])]


def test_windows_share_what_is_made_and_each_gets_what_it_lacks() -> None:
    """A version that is not known any more is answered with all lines."""
    texts = iter(["a\nb\nc", "a\nx\nc", "a\nx\ny"])
    made: list[str] = []

    async def make() -> str:
        made.append(next(texts))
        return made[-1]

    async def looks() -> None:
        parts = ShownParts()
        first = (await parts.look("/", 1, make)).response("")
        assert body(first) == {"whole": True, "parts": [[0, 0, ["a", "b", "c"]]]}
        version = first.headers["etag"]
        assert (await parts.look("/", 1, make)).response(version).status_code == 304
        assert len(made) == 1, "nothing has changed"
        await asyncio.sleep(1.1)
        second = (await parts.look("/", 2, make)).response(version)
        assert body(second) == {"whole": False, "parts": [[1, 2, ["x"]]]}
        assert body((await parts.look("/", 2, make)).response('"of before"'))["whole"]
        assert len(made) == 2

    asyncio.run(looks())


def body(response: Response) -> dict[str, object]:
    """The JSON of a response."""
    found: dict[str, object] = json.loads(bytes(response.body))
    return found


def test_an_update_of_a_large_run_is_small(tmp_path: Path) -> None:
    """1,000 replicas on 5,000 nodes: one goes down, time passes, and it runs again."""
    moments = [to_second(datetime.now(UTC) - timedelta(minutes=60 - at)) for at in range(6)]
    incidents = [
        {"cause": "Failure", "reason": "E", "replica": "w-1", "began": moment, "secondsLost": 9}
        for moment in moments[1:]
    ]

    def run_with(ready: int, message: str) -> dict[str, Any]:
        counts = {"worker": {"desired": 1000, "active": 1000, "ready": ready}}
        status = {"phase": "Running", "startTime": moments[0], "message": message}
        run = run_object(**status, replicas=counts, incidents=incidents)
        run["metadata"]["creationTimestamp"] = moments[0]
        run["spec"]["replicas"] = {"worker": {"count": 1000}}
        return run

    def pod_of(index: int, **status: Any) -> dict[str, Any]:
        pod = pod_object(f"worker-{index}", **status)
        pod["metadata"]["labels"] |= {names.ROLE: "worker", names.REPLICA_INDEX: str(index)}
        pod["metadata"]["namespace"] = "default"
        pod["spec"]["nodeName"] = f"gke-pool-of-the-cluster-{index:05}" if not status else ""
        return pod

    cluster = Cluster({"/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}})
    cluster.add(RUNS, run_with(1000, "1000 of 1000 replicas run"))
    cluster.add(PODS, *map(pod_of, range(1000)))
    labels = {"cloud.google.com/gke-spot": "true"}
    cluster.add(
        "/api/v1/nodes",
        *(
            {"metadata": {"name": f"gke-pool-of-the-cluster-{at:05}", "labels": labels}}
            for at in range(5000)
        ),
    )
    path = "/runs/default/mnist/live"
    with (
        serving(cluster, tmp_path),
        page("cluster", "--kubeconfig", str(tmp_path / "kubeconfig")) as served,
    ):
        served.enter()
        whole = served.ask("GET", path)
        assert len(whole.text) > 100_000
        version = whole.headers["etag"]
        for pod in (pod_of(7, phase="Pending"), pod_of(7), pod_of(8)):
            cluster.add(PODS, pod)
            cluster.add(RUNS, run_with(999, f"one of them is {pod['status']['phase']}"))
            time.sleep(5.1)  # A part is made again.
            update = served.ask("GET", path, headers={"if-none-match": version})
            version = update.headers["etag"]
            assert 0 < len(update.text) < 10_000
            assert not update.json["whole"]
