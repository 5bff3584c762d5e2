"""What a search of live pods finds, and what it may not judge."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from tests.cli.live import daemon_sets
from tests.cli.live.test_live_answers import CLUSTER, pod
from tests.kube.fake_api import answer_of
from tests.wording import Wording
from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.live import pod_search_report as report
from webhook.cli.live.pod_search import KINDS, Found, Kind, Search, search_pods
from webhook.sandbox.progress import Progress

Json = dict[str, Any]
DEPLOYED: Json = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "uid-web"}
SETS = "/apis/apps/v1/namespaces/ml/replicasets"


def found(
    folder: Path,
    more: Mapping[str, Any],
    forbidden: Collection[str] = (),
    *kinds: Kind,
) -> Found:
    """The result for the namespace ml of a cluster with `more`, where some paths are forbidden."""
    search = Search(frozenset(kinds or KINDS), "ml", ())
    return answer_of(
        {**CLUSTER, **more},
        folder,
        lambda client: search_pods(client, search, Progress()),
        forbidden,
    )


def test_a_daemon_sets_pod_on_a_node_that_a_requirement_excludes_would_be_rejected(
    tmp_path: Path, wording: Wording
) -> None:
    """Its controller creates the next one for the same node."""
    (one,) = found(tmp_path, daemon_sets.PATHS, (), "otherwise").findings
    wording(one.text)
    assert one.differences == ()


def test_a_daemon_sets_pod_is_unknown_without_a_right_to_list_nodes(
    tmp_path: Path, wording: Wording
) -> None:
    """Whether the requirement excludes its node decides."""
    result = found(tmp_path, daemon_sets.PATHS, {daemon_sets.NODES}, "otherwise")
    assert not result.findings
    (line,) = [each for each in result.unknown if "nodes" in each]
    wording(line)


def test_pods_whose_owners_may_not_be_listed_do_not_count_as_judged(
    tmp_path: Path, wording: Wording
) -> None:
    """Neither in the text nor in the JSON output."""
    pods = [pod("web-1-a", {**DEPLOYED, "controller": True}), pod("solo")]
    more = {**daemon_sets.PATHS, "/api/v1/namespaces/ml/pods": pods, SETS: []}
    known = found(tmp_path, more, (), "otherwise")
    assert (known.of_runs, known.judged, known.unjudged) == (2, 2, 0)
    some = found(tmp_path, more, {SETS}, "otherwise")
    assert (some.of_runs, some.judged, some.unjudged) == (2, 1, 1)
    text = click.unstyle("\n".join(report.lines(some)))
    none = found(tmp_path, {**more, "/api/v1/namespaces/ml/pods": pods[:1]}, {SETS}, "otherwise")
    shown = "\n".join(report.lines(none))
    assert "otherwise" not in shown
    wording(f"{text}\n{shown}", {some.policies.hash[:HASH_LENGTH]: "SET"})
    document = report.document(none)
    assert document["counts"] == {"otherwise": None}
    assert (document["ofRuns"], document["judged"], document["unjudged"]) == (1, 0, 1)
