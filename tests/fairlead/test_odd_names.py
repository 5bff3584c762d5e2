"""Every text that the package takes, with odd names: an error of its own, and nothing is written.

The functions and their parameters are those of the package: a new one is tried by itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlead as fl
from tests.cli.run.scripted_cluster import served
from tests.cli.test_every_failure import Faulty
from tests.odd_names import ODD_NAMES

WRITES = {"POST", "PUT", "PATCH", "DELETE"}
# What is given if it is not the one that is odd.
USUAL = {"name": "mnist", "image": "a", "namespace": "default"}


def program() -> None:
    """What a Run of a function runs."""


def owners(client: fl.Client) -> dict[type, Any]:
    """An object of each class with methods; classes are tried themselves too."""
    run = fl.Run("mnist", image="a")
    return {fl.Client: client, fl.RunHandle: fl.RunHandle(client, "default", "mnist"), fl.Run: run}


def called() -> Iterator[tuple[str, str]]:
    """The name of each function or class, and of each text that it takes."""
    for owner in (fl.Client, fl.RunHandle, fl.Run):
        public = [each for each in vars(owner) if not each.startswith("_")]
        methods = [f"{owner.__name__}.{each}" for each in public if callable(getattr(owner, each))]
        for name in (owner.__name__, *methods):
            function = getattr(owner, name.partition(".")[2], owner)
            for each in inspect.signature(function).parameters.values():
                if each.annotation in ("str", str):
                    yield name, each.name


def call(client: fl.Client, name: str, odd: dict[str, str]) -> None:
    """Call it with the odd text, and use what comes."""
    owner, _, method = name.partition(".")
    kind = getattr(fl, owner)
    function: Callable[..., Any] = getattr(owners(client)[kind], method) if method else kind
    needed = inspect.signature(function).parameters
    more: dict[str, Any] = {key: value for key, value in USUAL.items() if key in needed}
    if "function" in needed:
        more["function"] = program
    if "client" in needed:
        more["client"] = client
    answer = function(**{**more, **odd})
    if inspect.iscoroutine(answer):
        answer = asyncio.run(answer)
    if isinstance(answer, AsyncIterator):
        asyncio.run(_first(answer))
    elif isinstance(answer, Iterator):
        next(answer)
    elif isinstance(answer, fl.Client):
        answer.get("mnist")
    elif isinstance(answer, fl.Run):
        answer.manifest()
    elif isinstance(answer, fl.RunHandle):
        answer.delete()


async def _first(answers: AsyncIterator[Any]) -> object:
    return await anext(answers)


@pytest.mark.parametrize(("name", "text"), sorted({*called()}))
def test_an_odd_text_is_an_error_of_the_package(tmp_path: Path, name: str, text: str) -> None:
    """Nothing is written, and no other Run is deleted."""
    there = Faulty("conflict")
    with served(there, tmp_path):
        client = fl.Client(tmp_path / "kubeconfig", namespace="default")
        for odd in ODD_NAMES:
            there.asked.clear()
            refused = False
            try:
                call(client, name, {text: odd})
            except (fl.FairleadError, TimeoutError):
                refused = True
            paths = [each.split()[1] for each in there.asked if each.split()[0] in WRITES]
            # The Run of that name in its namespace, if the odd text is neither.
            assert {*paths} <= {"/apis/fairlead.dev/v1alpha1/namespaces/default/runs/mnist"}
            if text in ("name", "namespace") and (odd or name == "RunHandle"):
                assert refused, f"{name} {text}={odd!r}"
                assert not paths


def test_all_that_takes_a_name_is_tried() -> None:
    found = {*called()}
    assert {("Client.get", "name"), ("RunHandle", "name"), ("Run", "name")} <= found
    assert {("Run.from_function", "queue"), ("RunHandle.wait_async", "until")} <= found
