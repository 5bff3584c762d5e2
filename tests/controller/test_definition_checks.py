"""The controller compares all definitions all the time, and says what it does not know."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from webhook.controller.definition_checks import NAMES, DefinitionChecks, own_definitions

Json = dict[str, Any]


async def test_each_definition_is_outdated_until_it_has_all_fields(tmp_path: Path) -> None:
    """Before the first answer, without the right, and while one is absent or older."""
    served: dict[str, Json] = {}
    for each in own_definitions():
        found = copy.deepcopy(dict(each))
        name = found["metadata"]["name"]
        served[name] = {**found, "metadata": {"name": name, "uid": name, "generation": 1}}
    code = 403
    outdated: dict[str, bool] = {}

    async def answer(request: Request, to: Answer) -> None:
        name = request.path.rpartition("/")[2]
        if code != 200:
            await to.status(code, "X", "not for you")
        elif name in served:
            await to.json(served[name])
        else:
            await to.status(404, "NotFound", "none")

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        checks = DefinitionChecks(client, outdated.__setitem__, interval=0.01)
        assert outdated == dict.fromkeys(NAMES, True)
        task = asyncio.create_task(checks.run())
        await until(lambda: "may not get them" in checks.reason)
        assert set(outdated.values()) == {True}
        code = 200
        await until(lambda: checks.reason == "those of this version")
        assert outdated == dict.fromkeys(NAMES, False)
        absent = served.pop(NAMES[0])
        await until(lambda: f"no definition {NAMES[0]}" in checks.reason)
        assert {name for name, old in outdated.items() if old} == {NAMES[0]}
        spec = absent["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"].popitem()
        absent["metadata"]["generation"] = 2
        served[NAMES[0]] = absent
        await until(lambda: "without its rules; apply those" in checks.reason)
        assert {name for name, old in outdated.items() if old} == {NAMES[0]}
        task.cancel()
        await asyncio.wait([task])
