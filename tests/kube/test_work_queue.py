"""The work queue: workers, times, backoff."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.kube.virtual_time import now, run
from webhook.kube.work_queue import WorkQueue

pytestmark = pytest.mark.virtual_time


def queue() -> WorkQueue:
    return WorkQueue(clock=now, random=Random(1))


async def take(from_queue: WorkQueue) -> str:
    """The next key; a test that would wait for ever fails instead."""
    async with asyncio.timeout(1000):
        key = await from_queue.get()
    assert key is not None
    return key


async def test_a_later_key_comes_at_the_earliest_of_its_times() -> None:
    work, start = queue(), now()
    work.add_after("a", 20)
    work.add_after("a", 10)
    work.add_after("a", 30)
    work.add_after("b", 15)
    work.add_after("c", 0)
    seen = []
    for _ in range(3):
        seen.append((await take(work), now() - start))
        work.done(seen[-1][0])
    assert seen == [("c", 0.0), ("a", 10.0), ("b", 15.0)]
    await asyncio.sleep(100)
    assert (work.agenda.ready, len(work.agenda.due)) == (0, 0)


async def test_a_key_that_comes_early_still_comes_at_its_time() -> None:
    """An event in between does not make a deadline forgotten."""
    work, start = queue(), now()
    work.add_after("a", 10)
    work.add("a")
    assert await take(work) == "a"
    work.done("a")
    assert await take(work) == "a"
    assert now() - start == 10.0


async def test_a_key_that_fails_is_tried_ever_later_up_to_five_minutes() -> None:
    """5 ms, doubling, each times 0.5 to 1.5; and at once again after it went well."""
    work, pauses = queue(), []
    for attempt in range(20):
        asked = work.retry("a")
        assert 0.5 <= asked / min(300.0, 0.005 * 2**attempt) <= 1.5
        before = now()
        assert await take(work) == "a"
        pauses.append(now() - before)
        assert pauses[-1] == pytest.approx(asked)
        work.done("a")
    work.forget("a")
    assert work.retry("a") <= 0.0075
    assert work.retry("b") <= 0.0075
    assert pauses[-1] >= 150.0


async def test_the_age_of_the_oldest_key_is_exposed() -> None:
    work = queue()
    assert work.oldest_age() == 0.0
    work.add("a")
    await asyncio.sleep(3)
    work.add("b")
    await asyncio.sleep(4)
    assert work.oldest_age() == 7.0
    await take(work)
    assert work.oldest_age() == 4.0


async def test_a_queue_that_is_shut_down_sends_its_workers_home() -> None:
    """Those that wait and those that come; what is in work may still be done."""
    work = queue()
    work.add("a")
    assert await take(work) == "a"
    workers = [asyncio.create_task(work.get()) for _ in range(3)]
    work.add_after("b", 5)
    await asyncio.sleep(1)
    work.shut_down()
    assert await asyncio.gather(*workers) == [None] * 3
    work.add("c")
    work.add_after("d", 1)
    work.retry("e")
    work.done("a")
    await asyncio.sleep(100)
    assert await work.get() is None
    assert work.agenda.ready == 0


async def test_a_worker_cancelled_as_its_key_comes_leaves_it_to_another() -> None:
    """No key is lost between waking and taking."""
    work = queue()
    first, second = (asyncio.create_task(take(work)) for _ in range(2))
    await asyncio.sleep(1)
    work.add("a")
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    assert await second == "a"


async def test_a_worker_cancelled_while_it_waits_is_forgotten() -> None:
    """The next key goes to one that is there."""
    work = queue()
    first, second = (asyncio.create_task(take(work)) for _ in range(2))
    await asyncio.sleep(1)
    first.cancel()
    await asyncio.wait([first])
    work.add("a")
    assert await second == "a"


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from("abcde"), st.integers(0, 10)), max_size=40
    ),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_whatever_comes_is_worked_on_afterwards_and_by_one_at_a_time(
    comings: list[tuple[int, str, int]], workers: int, random: Random
) -> None:
    """With any number of workers, any durations of work, and any times of adding."""

    async def main() -> None:
        work = WorkQueue(clock=now, random=random)
        begun: dict[str, list[float]] = {key: [] for key in "abcde"}
        busy: set[str] = set()

        async def worker() -> None:
            while (key := await work.get()) is not None:
                assert key not in busy
                busy.add(key)
                begun[key].append(now())
                await asyncio.sleep(random.choice((0, 0.5, 3)))
                busy.remove(key)
                work.done(key)

        added: list[tuple[float, str]] = []
        async with asyncio.TaskGroup() as tasks:
            for _ in range(workers):
                tasks.create_task(worker())
            for pause, key, delay in comings:
                await asyncio.sleep(pause / 10)
                added.append((now(), key))
                work.add_after(key, delay)
            await asyncio.sleep(1000)
            assert (work.agenda.ready, len(work.agenda.working), len(work.agenda.due)) == (0, 0, 0)
            work.shut_down()
        assert all(any(time >= at for time in begun[key]) for at, key in added)
        assert all(len(begun[key]) <= sum(key == one for _, one in added) for key in begun)

    run(main())


async def test_keys_that_are_due_at_once_wake_as_many_workers() -> None:
    work = queue()
    workers = [asyncio.create_task(take(work)) for _ in range(3)]
    await asyncio.sleep(1)
    begin = now()
    for key in "abc":
        work.add_after(key, 5)
    await asyncio.gather(*workers)
    assert (now() - begin) == 5
