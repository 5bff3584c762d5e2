"""The controller says of each Deployment of Fairlead whether its rollout is complete."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from webhook import metric_names, names
from webhook.controller.controller_metrics import ControllerMetrics
from webhook.controller.rollout_checks import RolloutChecks

Json = dict[str, Any]


def deployment(name: str, *, updated: int) -> Json:
    """One of three replicas, all of which are available."""
    status = {"replicas": 3, "updatedReplicas": updated, "availableReplicas": 3}
    return {"metadata": {"name": name}, "spec": {"replicas": 3}, "status": status}


async def test_what_cannot_be_read_is_not_complete(tmp_path: Path) -> None:
    """Each by its name; one that is gone has no series, and neither has one of others."""
    served = [deployment(each, updated=3) for each in (names.CONTROLLER, names.WEBHOOK, "other")]
    code = 403
    registry = CollectorRegistry()
    metrics = ControllerMetrics(registry)
    reported: list[Mapping[str, str]] = []

    def report(lacking: Mapping[str, str]) -> None:
        reported.append(lacking)
        metrics.rollouts(lacking)

    def gauge() -> dict[str, float | None]:
        return {
            name: registry.get_sample_value(metric_names.ROLLOUT_INCOMPLETE, {"deployment": name})
            for name in (names.CONTROLLER, names.WEBHOOK, "other")
        }

    async def answer(_: Request, to: Answer) -> None:
        if code != 200:
            await to.status(code, "X", "not for you")
        else:
            await to.json({"metadata": {"resourceVersion": "1"}, "items": served})

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        checks = RolloutChecks(client, "home", report, interval=0.01)
        task = asyncio.create_task(checks.run())
        await until(lambda: "not for you" in checks.reason)
        assert gauge() == {names.CONTROLLER: 1, names.WEBHOOK: 1, "other": None}
        code = 200
        await until(lambda: checks.reason == "complete")
        assert gauge() == {names.CONTROLLER: 0, names.WEBHOOK: 0, "other": None}
        served[1] = deployment(names.WEBHOOK, updated=1)
        await until(lambda: "1 of 3 new pods" in checks.reason)
        assert gauge() == {names.CONTROLLER: 0, names.WEBHOOK: 1, "other": None}
        served.pop(1)
        await until(lambda: checks.reason == "complete")
        assert gauge() == {names.CONTROLLER: 0, names.WEBHOOK: None, "other": None}
        task.cancel()
        await asyncio.wait([task])
