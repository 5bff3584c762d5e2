"""What is remembered of a collection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from webhook.kube import cache as module
from webhook.kube.cache import Cache, Change


def make() -> tuple[Cache[int], list[Change[int]]]:
    cache: Cache[int] = Cache(lambda seen: int(seen["value"]), clock=lambda: 7.0)
    changes: list[Change[int]] = []
    cache.subscribe(changes.append)
    return cache, changes


def test_a_new_list_tells_of_what_came_changed_and_went() -> None:
    """Listeners hear of each difference between the old list and the new, removals included."""
    cache, changes = make()
    cache.replace({"same": 1, "changed": 2, "gone": 3})
    changes.clear()
    cache.replace({"same": 1, "changed": 20, "new": 4})
    assert changes == [
        Change("changed", 2, 20),
        Change("gone", 3, None),
        Change("new", None, 4),
    ]


def test_a_listener_never_sees_half_a_list() -> None:
    """When the first listener is called, the whole new list is there already."""
    cache, _ = make()
    seen: list[dict[str, int]] = []
    cache.subscribe(lambda _: seen.append(dict(cache.items())))
    cache.replace({"a": 1, "b": 2})
    assert seen == [{"a": 1, "b": 2}, {"a": 1, "b": 2}]


def test_a_change_between_two_slices_of_a_list_comes_after_the_keys_own_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A listener gets each value of a key as the value before the next one."""
    monkeypatch.setattr(module, "SLICE", 1)
    cache, changes = make()
    cache.replace({"a": 1, "b": 1, "c": 1}, "5")
    changes.clear()
    slices = cache.replacing({"a": 2, "b": 2, "d": 2}, "6")
    next(slices)
    assert cache.items() == {"a": 2, "b": 2, "d": 2}
    cache.offer("b", 3, "7")
    cache.put("d", None, "8")
    assert len(list(slices)) == 3
    assert changes == [
        Change("a", 1, 2),
        Change("b", 1, 2),
        Change("b", 2, 3),
        Change("d", None, 2),
        Change("d", 2, None),
        Change("c", 1, None),
    ]


def test_what_was_not_reported_of_a_list_is_reported_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The task that reads them may end in between; before that it knows nothing whole."""
    monkeypatch.setattr(module, "SLICE", 1)
    cache, changes = make()
    next(cache.replacing({"a": 1, "b": 1, "c": 1}, "5"))
    assert (cache.synced, changes) == (False, [Change("a", None, 1)])
    cache.replace({"a": 1, "b": 2}, "6")
    assert (cache.synced, changes) == (True, [Change("a", None, 1), Change("b", None, 2)])


def test_an_equal_value_is_not_a_change() -> None:
    cache, changes = make()
    cache.put("a", 1)
    cache.put("a", 1)
    cache.put("b", None)
    assert changes == [Change("a", None, 1)]


def test_none_removes() -> None:
    cache, changes = make()
    cache.put("a", 1)
    cache.put("a", None)
    assert cache.get("a") is None
    assert dict(cache.items()) == {}
    assert changes[-1] == Change("a", 1, None)


async def test_one_whole_list_makes_it_synced() -> None:
    cache, _ = make()
    waiting = asyncio.create_task(cache.wait_synced())
    cache.put("a", 1)
    assert not cache.synced
    cache.replace({})
    await waiting
    assert cache.synced


def test_age_counts_from_the_last_message_of_the_server() -> None:
    """Nobody knows the age of what was never heard."""
    now = [100.0]
    cache: Cache[int] = Cache(lambda _: 1, clock=lambda: now[0])
    assert cache.age() is None
    cache.touch()
    now[0] = 130.0
    assert cache.age() == 30.0


def test_what_was_written_is_known_at_once() -> None:
    """The watch tells of it a little later, and that is no change then."""
    cache, changes = make()
    cache.replace({}, "10")
    cache.offer("a", 1, "12")
    assert cache.get("a") == 1
    cache.put("a", 1, "12")
    assert changes == [Change("a", None, 1)]


def test_an_answer_older_than_the_watch_is_dropped() -> None:
    """What was created may be deleted by the time that its creation is answered."""
    cache, _ = make()
    cache.replace({}, "10")
    cache.put("a", 1, "12")
    cache.put("a", None, "13")
    cache.offer("a", 1, "12")
    assert cache.get("a") is None


def test_an_answer_is_dropped_once_the_watch_has_passed_it() -> None:
    """Events come in the order of versions, other objects' among them."""
    cache, _ = make()
    cache.put("b", 1, "15")
    cache.offer("a", 1, "12")
    assert cache.get("a") is None


def test_an_event_older_than_an_answer_changes_nothing() -> None:
    """Else a status that was written would be forgotten for a moment."""
    cache, changes = make()
    cache.put("a", 1, "10")
    cache.offer("a", 3, "30")
    cache.put("a", 2, "20")
    assert cache.get("a") == 3
    cache.put("a", 4, "40")
    assert [change.after for change in changes] == [1, 3, 4]


def test_an_object_that_was_deleted_does_not_come_back_with_an_old_event() -> None:
    """The answer to a deletion is of the version in which it is gone."""
    cache, _ = make()
    cache.put("a", 1, "10")
    cache.offer("a", None, "30")
    cache.put("a", 2, "20")
    assert cache.get("a") is None
    cache.put("a", None, "30")
    cache.put("a", 5, "31")
    assert cache.get("a") == 5


def test_of_two_answers_the_later_version_stays() -> None:
    cache, _ = make()
    cache.offer("a", 3, "30")
    cache.offer("a", 2, "20")
    assert cache.get("a") == 3


def test_a_list_does_not_forget_what_was_written_after_it() -> None:
    """Its pages take a while to come."""
    cache, changes = make()
    cache.put("old", 1, "5")
    cache.offer("new", 1, "30")
    cache.offer("old", None, "31")
    cache.offer("listed", 1, "10")
    changes.clear()
    cache.replace({"old": 1, "listed": 2}, "20")
    assert dict(cache.items()) == {"new": 1, "listed": 2}
    assert changes == [Change("listed", 1, 2)]


def test_what_the_watch_never_tells_of_is_forgotten_at_a_bookmark() -> None:
    """An object whose labels were changed on its way in is not in the collection."""
    cache, changes = make()
    cache.offer("a", 1, "30")
    cache.passed("29")
    assert cache.get("a") == 1
    cache.passed("30")
    assert cache.get("a") is None
    assert changes[-1] == Change("a", 1, None)


def test_a_store_restored_from_a_backup_begins_another_history() -> None:
    """Versions run backwards then, and what was offered of later ones never was."""
    cache, _ = make()
    cache.put("a", 1, "100")
    cache.offer("b", 1, "120")
    cache.replace({"a": 7}, "50")
    assert dict(cache.items()) == {"a": 7}
    cache.put("b", 2, "60")
    assert cache.get("b") == 2


def test_a_version_that_is_not_a_number_orders_nothing() -> None:
    """An answer without one is left to the watch."""
    cache, _ = make()
    cache.offer("a", 1, "")
    assert cache.get("a") is None


def test_an_object_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """It is counted and logged, and those beside it are remembered."""
    cache, _ = make()
    metadata = {"namespace": "lab", "name": "odd"}
    assert cache.keep({"metadata": metadata, "value": "x"}) is None
    assert cache.keep({"metadata": 7}) is None
    assert (cache.unreadable, cache.keep({"metadata": {"name": "a"}, "value": 3})) == (2, 3)
    assert caplog.records[0].__dict__["object"] == "lab/odd"


def test_an_object_that_cannot_be_read_has_no_value_though_it_had_one() -> None:
    """What is cached depends on the cluster, and not on what this process saw before."""
    cache, changes = make()
    odd = {"metadata": {"name": "a"}, "value": "x"}
    cache.put("a", 1)
    cache.put(*cache.entry(odd))
    assert changes[-1] == Change("a", 1, None)
    assert cache.faults == {"a": "ValueError, see the log"}


def test_listeners_are_told_of_a_deleted_object_as_it_was_at_last() -> None:
    """What happened to it shortly before comes with its deletion, and with nothing else."""
    cache, changes = make()
    cache.put("a", 1)
    cache.remove({"metadata": {"name": "a"}, "value": 2}, "7")
    assert changes == [Change("a", None, 1), Change("a", 1, 2), Change("a", 2, None)]


@pytest.mark.parametrize(
    "end",
    [
        lambda cache: cache.put(*cache.entry({"metadata": {"name": "a"}, "value": 2})),
        lambda cache: cache.remove({"metadata": {"name": "a"}, "value": "x"}),
        lambda cache: cache.replace({"b": 1}),
    ],
    ids=["read again", "deleted", "not in the next list"],
)
def test_a_fault_is_named_until_its_object_can_be_read_or_is_gone(
    end: Callable[[Cache[int]], None],
) -> None:
    """Also after other objects have changed."""
    cache, _ = make()
    cache.put(*cache.entry({"metadata": {"name": "a"}, "value": "x"}))
    cache.put("b", 2)
    assert list(cache.faults) == ["a"]
    end(cache)
    assert cache.faults == {}


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ({"metadata": {"namespace": "lab"}, "value": 1}, "lab/?"),
        ({"metadata": {"name": ["a"], "namespace": {}}, "value": 1}, "?"),
        ({"metadata": 7, "value": 1}, "?"),
        ({"value": 1}, "?"),
        (None, "?"),
    ],
)
def test_an_object_without_a_name_is_reported_with_what_is_known_of_it(raw: Any, key: str) -> None:
    """It has no value, because no key is its own."""
    cache, _ = make()
    assert cache.entry(raw) == (key, None)
    assert cache.faults == {key: "it has no name"}


def test_a_change_that_a_listener_does_not_take_is_a_fault_of_the_object() -> None:
    """The value is cached, and the next change is offered again."""
    cache, _ = make()
    broken = [True]

    def listener(_: Change[int]) -> None:
        if broken[0]:
            raise ZeroDivisionError

    cache.subscribe(listener)
    cache.put("a", 1)
    assert cache.get("a") == 1
    assert list(cache.faults) == ["a"]
    broken[0] = False
    cache.put("a", 2)
    assert cache.faults == {}


def test_the_same_fault_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """An object that its controller writes each second would fill the log."""
    cache, _ = make()
    for version in range(5):
        cache.keep({"metadata": {"name": "a", "resourceVersion": str(version)}, "value": "x"})
    assert len(caplog.records) == 1
    assert cache.unreadable == 5
