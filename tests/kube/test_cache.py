"""What is remembered of a collection."""

from __future__ import annotations

import asyncio

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


def test_an_equal_value_is_no_change() -> None:
    """Putting what is there already calls nobody."""
    cache, changes = make()
    cache.put("a", 1)
    cache.put("a", 1)
    cache.put("b", None)
    assert changes == [Change("a", None, 1)]


def test_none_removes() -> None:
    """A key whose object is not to be kept is gone."""
    cache, changes = make()
    cache.put("a", 1)
    cache.put("a", None)
    assert cache.get("a") is None
    assert dict(cache.items()) == {}
    assert changes[-1] == Change("a", 1, None)


def test_one_whole_list_makes_it_synced() -> None:
    """Single values do not; an empty list does."""

    async def run() -> None:
        cache, _ = make()
        waiting = asyncio.create_task(cache.wait_synced())
        cache.put("a", 1)
        assert not cache.synced
        cache.replace({})
        await waiting
        assert cache.synced

    asyncio.run(run())


def test_age_counts_from_the_last_word_of_the_server() -> None:
    """Nobody knows the age of what was never heard."""
    now = [100.0]
    cache: Cache[int] = Cache(lambda _: 1, clock=lambda: now[0])
    assert cache.age() is None
    cache.touch()
    now[0] = 130.0
    assert cache.age() == 30.0
    assert cache.last_contact == 100.0
