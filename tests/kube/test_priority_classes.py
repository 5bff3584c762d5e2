"""The cluster's default PriorityClass."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from webhook.errors import NotSynced
from webhook.kube.watched_objects import PriorityClasses, value_of_default

if TYPE_CHECKING:
    from pathlib import Path


async def nothing(_: Request, answer: Answer) -> None:
    await answer.status(503, "ServiceUnavailable", "down")


def default_of(folder: Path, *lists: dict[str, int]) -> str | None:
    """The default after these lists of default classes and their values, one after the other."""

    async def run() -> str | None:
        async with fake_api(nothing) as api, client_of(api, folder) as client:
            classes = PriorityClasses(client)
            for values in lists:
                classes.cache.replace(values)
            return classes.default

    return asyncio.run(run())


def test_there_is_no_answer_before_the_first_list(tmp_path: Path) -> None:
    with pytest.raises(NotSynced, match="not known yet"):
        default_of(tmp_path)


def test_a_cluster_may_have_no_default(tmp_path: Path) -> None:
    assert default_of(tmp_path, {}) is None


def test_the_default_is_known_by_name_and_forgotten_when_it_goes(tmp_path: Path) -> None:
    assert default_of(tmp_path, {"batch": 10}) == "batch"
    assert default_of(tmp_path, {"batch": 10}, {}) is None


def test_of_several_defaults_the_lowest_value_counts(tmp_path: Path) -> None:
    """As in the Priority admission plugin, where a race has left two behind."""
    assert default_of(tmp_path, {"high": 10, "low": -5, "middle": 0}) == "low"


@pytest.mark.parametrize(
    ("seen", "value"),
    [
        ({"globalDefault": True, "value": 7}, 7),
        ({"globalDefault": True}, 0),
        ({"globalDefault": False, "value": 7}, None),
        ({"value": 7}, None),
    ],
)
def test_only_defaults_are_remembered(seen: dict[str, Any], value: int | None) -> None:
    assert value_of_default(seen) == value
