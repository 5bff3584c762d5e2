"""Workers, as long as this process leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.controller.runs import Api, Json, raw_run, refused
from tests.controller.test_informers import empty_lists
from tests.kube.fake_api import until
from tests.wording import Wording, mentions
from webhook.controller.controller import Controller
from webhook.controller.controller_metrics import ControllerMetrics
from webhook.errors import NotLeading
from webhook.kube.watches import Watches
from webhook.run.model import Run
from webhook.run.plan import Plan, plan


class Stage:
    """A controller whose watches say nothing: what it lists is all that it ever hears."""

    def __init__(self, plan: Callable[[Run], Plan] = plan, runs: int = 1) -> None:
        self.api = Api()
        empty_lists(self.api)
        listed: list[Json] = [raw_run(name=f"run-{number}") for number in range(runs)]
        self.api.answers["list", "runs"] = {"items": listed}
        self.registry = CollectorRegistry()
        metrics = ControllerMetrics(self.registry)
        self.controller = Controller(Watches(self.api.client), self.api.writer, plan, metrics)
        for informer in self.controller.informers.all:
            informer.cache.replace({}, "1")

    def value(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"fairlead_{name}", labels) or 0.0


@asynccontextmanager
async def leading(stage: Stage) -> AsyncIterator[None]:
    task = asyncio.create_task(stage.controller.lead())
    try:
        async with asyncio.timeout(120):
            yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_who_leads_makes_the_pods_of_every_run() -> None:
    """Those that were there before among them; and says that it leads, until it does not."""
    stage = Stage(runs=5)
    async with leading(stage):
        await until(lambda: stage.value("pods_created_total") == 15)
        assert stage.value("leader") == 1
    assert stage.value("leader") == 0
    assert stage.controller.queue_depth() == 0
    assert stage.controller.queue_age() == 0.0
    assert stage.controller.failing_age() == 0.0


async def test_a_bug_that_meets_one_run_does_not_take_the_others_with_it(
    caplog: pytest.LogCaptureFixture, wording: Wording
) -> None:
    """It is logged as what it is, and the run tried again, ever later."""

    def broken(run: Run) -> Plan:
        if run.name == "run-0":
            raise ZeroDivisionError
        return plan(run)

    stage = Stage(broken, runs=3)
    async with leading(stage):
        await until(lambda: stage.value("pods_created_total") == 6)
        await until(lambda: stage.value("reconciles_total", result="failed") >= 2)
    (message,) = {each.getMessage() for each in caplog.records if each.exc_info}
    mentions(message, "run lab/run-0", "bug")
    wording(message)


async def test_trouble_of_the_api_server_is_tried_again() -> None:
    """Each time a little later; what was made stays made."""
    stage = Stage()
    stage.api.answers["create", "*"] = refused(503)
    async with leading(stage):
        await until(lambda: stage.value("reconciles_total", result="failed") >= 3)
        del stage.api.answers["create", "*"]
        await until(lambda: stage.value("pods_created_total") == 3)


async def test_a_status_that_had_changed_meanwhile_is_a_conflict_and_no_failure() -> None:
    """The look is repeated upon the newer one."""
    stage = Stage()
    stage.api.answers["replace", "*"] = refused(409, "Conflict")
    async with leading(stage):
        await until(lambda: stage.value("reconciles_total", result="conflict") >= 1)
        del stage.api.answers["replace", "*"]
        await until(lambda: stage.value("reconciles_total", result="done") >= 1)
    assert stage.value("reconciles_total", result="failed") == 0


async def test_without_the_lease_nothing_is_tried_again() -> None:
    """Whoever holds it looks at everything."""
    stage = Stage()
    stage.api.answers["create", "*"] = NotLeading("lost")
    async with leading(stage):
        await until(lambda: stage.value("reconciles_total", result="failed") == 1)
        for _ in range(50):
            await asyncio.sleep(0)
    assert stage.api.named("create") == ["run-0"]


async def test_a_look_that_is_under_way_ends_before_the_leading_does() -> None:
    """Its status is written then, and nothing is left to be found out."""
    stage = Stage()
    held = asyncio.Event()
    async with leading(stage):
        create = stage.api.create

        async def slow(path: str, body: Any) -> Json:
            held.set()
            await asyncio.sleep(0.05)
            return await create(path, body)

        stage.api.create = slow  # type: ignore[assignment, method-assign]
        await held.wait()
    assert stage.api.named("replace") == ["run-0"]


async def test_a_run_that_is_gone_leaves_nothing_behind() -> None:
    """What was refused of it is forgotten."""
    stage = Stage()
    stage.api.answers["create", "*"] = refused(403, "Forbidden", "exceeded quota")
    refusals = stage.controller.refusals
    async with leading(stage):
        await until(lambda: refusals.refusals_of("uid-run-0") != ())
        stage.controller.known.runs.put("lab/run-0", None)
        assert refusals.refusals_of("uid-run-0") == ()
