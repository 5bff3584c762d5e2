"""What a pass over all pods does to reports in namespaces that end, or without the definition."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from webhook import names
from webhook.cluster_objects.watched_objects import ClusterClasses, NodeView
from webhook.controller.policies.report_documents import NAME, collection
from webhook.controller.policies.report_writer import PodReports
from webhook.errors import ClusterError
from webhook.policy.load import load

Json = dict[str, Any]


POLICIES = load({}).policies


# Nodes that nobody may watch.
UNWATCHED = cast(
    NodeView, SimpleNamespace(nodes=lambda: None, trouble=lambda: "you may not list nodes")
)
NO_CLASSES = cast(ClusterClasses, SimpleNamespace(by_kind=dict))


class Cluster:
    """An API server with pods of runs in some namespaces, which may be ending, and reports."""

    def __init__(self) -> None:
        self.pods: list[str] = []
        self.ending: list[str] = []
        self.reports: dict[str, Json] = {}
        self.is_defined = True
        self.writes: list[tuple[str, str]] = []

    async def serve(self, request: Request, answer: Answer) -> None:
        if request.path == collection() and self.is_defined:
            await answer.json(_list(self.reports.values()))
        elif request.path == "/api/v1/namespaces":
            known = {*self.pods, *self.ending, *self.reports}
            await answer.json(_list(self._namespace(each) for each in known))
        elif request.path == "/api/v1/pods":
            await answer.json(_list(map(_pod, self.pods)))
        elif request.path.endswith(("/priorityclasses", "/runtimeclasses")):
            await answer.json(_list([]))
        elif request.path.startswith("/apis/wgpolicyk8s.io") and self.is_defined:
            await self._write(request, answer)
        else:
            await answer.status(404, "NotFound", request.path)

    async def _write(self, request: Request, answer: Answer) -> None:
        namespace = request.path.split("/")[5]
        self.writes.append((request.method, namespace))
        if request.method == "POST" and namespace in self.ending:
            await answer.status(403, "Forbidden", "the namespace is being terminated")
            return
        if request.method == "DELETE":
            del self.reports[namespace]
        else:
            self.reports[namespace] = _report(namespace)
        await answer.json({})

    def _namespace(self, name: str) -> Json:
        ended = {"deletionTimestamp": "2026-11-25T00:00:00Z"} if name in self.ending else {}
        return {"metadata": {"name": name, **ended}}


def _list(items: Any) -> Json:
    return {"metadata": {"resourceVersion": "1"}, "items": [*items]}


def _report(namespace: str) -> Json:
    metadata = {"name": NAME, "namespace": namespace, "uid": namespace, "labels": {}}
    return {"metadata": metadata, "summary": {"pass": 7}}


def _pod(namespace: str) -> Json:
    metadata = {"name": "p", "namespace": namespace, "uid": "u", "labels": {names.RUN: "r"}}
    return {"metadata": metadata, "spec": {"containers": []}, "status": {}}


async def test_a_report_in_a_namespace_that_ends_is_written_and_removed_with_its_last_pod(
    tmp_path: Path,
) -> None:
    """A namespace may be Terminating for days; no report is created in it."""
    cluster = Cluster()
    cluster.pods = ["busy", "new"]
    cluster.ending = ["busy", "new", "empty"]
    cluster.reports = {each: _report(each) for each in ("busy", "empty")}

    async with fake_api(cluster.serve) as api, client_of(api, tmp_path) as client:
        reports = PodReports(client, client, lambda: POLICIES, UNWATCHED, NO_CLASSES)
        await reports.write_all(POLICIES)
        assert reports.state.startswith("1 policy reports")
    assert cluster.writes == [("PUT", "busy"), ("DELETE", "empty")]


async def test_reports_do_not_count_after_their_definition_is_deleted(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.pods = ["busy"]

    async with fake_api(cluster.serve) as api, client_of(api, tmp_path) as client:
        reports = PodReports(client, client, lambda: POLICIES, UNWATCHED, NO_CLASSES)
        await reports.write_all(POLICIES)
        assert reports.state.startswith("1 policy reports")
        cluster.is_defined = False
        with pytest.raises(ClusterError, match="does not serve policyreports"):
            await reports.write_all(POLICIES)
        assert reports.state == "no policy reports"
