"""The work queue: workers, times, backoff, and the order of keys beside a model of a few lines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.kube.virtual_time import now, run
from webhook.kube.work_queue import Agenda, WorkQueue

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


async def test_the_age_of_the_longest_failure_lasts_until_a_success() -> None:
    """However long its pauses are, and whatever becomes of other keys."""
    work = queue()
    assert work.failing_age() == 0.0
    work.retry("a")
    await asyncio.sleep(100)
    work.retry("a")
    work.retry("b")
    work.forget("c")
    assert work.failing_age() == 100.0
    work.forget("a")
    assert work.failing_age() == 0.0
    await asyncio.sleep(7)
    assert work.failing_age() == 7.0
    work.forget("b")
    assert work.failing_age() == 0.0


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


async def test_between_two_keys_all_other_tasks_have_a_turn() -> None:
    """The work on a key may wait for nothing, and there may be thousands of keys."""
    work, turns = queue(), 0
    for number in range(100):
        work.add(f"lab/{number}")

    async def do_all() -> None:
        while (key := await work.get()) is not None:
            work.done(key)
            if not work.agenda.ready:
                work.shut_down()

    worker = asyncio.create_task(do_all())
    while not worker.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 100


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


KEYS = st.sampled_from(("a/x", "a/y", "a/z", "b/x", "b/y", "c/x"))
STEPS = st.one_of(
    st.tuples(st.just("add"), KEYS, st.just(0)),
    st.tuples(st.just("add_at"), KEYS, st.integers(1, 9)),
    st.tuples(st.just("take"), st.just(""), st.just(0)),
    st.tuples(st.just("done"), KEYS, st.just(0)),
    st.tuples(st.just("wait"), st.just(""), st.integers(1, 5)),
)


@dataclass
class Model:
    """What client-go's documentation says, and that namespaces take turns, as plain as can be."""

    waiting: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    working: set[str] = field(default_factory=set)
    later: dict[str, int] = field(default_factory=dict)

    def add(self, key: str) -> None:
        line = self.again if key in self.working else self.waiting
        if key not in line:
            line.append(key)
        self.note_turns()

    def note_turns(self) -> None:
        waiting = list(dict.fromkeys(key[0] for key in self.waiting))
        kept = [turn for turn in self.turns if turn in waiting]
        self.turns = [*kept, *(turn for turn in waiting if turn not in kept)]

    def take(self) -> str | None:
        if not self.waiting:
            return None
        turn = self.turns.pop(0)
        key = next(key for key in self.waiting if key[0] == turn)
        self.waiting.remove(key)
        self.note_turns()
        return key

    def wait(self, now: int, order: list[str]) -> None:
        """Keys of one second come in any order: in that of `order`."""
        due = [key for key, at in self.later.items() if at <= now]
        for key in sorted(due, key=lambda key: order.index(key) if key in order else 0):
            del self.later[key]
            self.add(key)

    def done(self, key: str) -> None:
        self.working.remove(key)
        if key in self.again:
            self.again.remove(key)
            self.waiting.append(key)
            self.note_turns()


@settings(deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_any_sequence_of_calls_goes_as_the_model_says(steps: list[tuple[str, str, int]]) -> None:
    """Keys are handed out in turn, once, never to two at a time, never too early, never lost."""
    agenda, model, now = Agenda(), Model(), 0
    for step, key, number in steps:
        if step == "add":
            agenda.add(key, now)
            model.add(key)
        elif step == "add_at":
            agenda.add_at(key, now + number)
            model.later[key] = min(model.later.get(key, now + number), now + number)
        elif step == "take":
            taken = agenda.take()
            assert taken == model.take()
            assert taken not in model.working
            if taken is not None:
                model.working.add(taken)
        elif step == "done" and key in model.working:
            agenda.done(key)
            model.done(key)
        elif step == "wait":
            # One second at a time: two keys that are due in one go may come in either order.
            for _ in range(number):
                now += 1
                agenda.wake(now)
                model.wait(now, list(agenda._since))  # noqa: SLF001
        assert agenda.ready == len(model.waiting)
        assert len(agenda.working) == len(model.working)
        assert len(agenda.due) == len(model.later)


def test_a_thousand_keys_of_one_namespace_hold_back_another_by_one() -> None:
    """Whoever creates many runs does not keep the others from being looked at."""
    agenda = Agenda()
    for number in range(1000):
        agenda.add(f"crowd/{number}", 0.0)
    first = agenda.take()
    assert first == "crowd/0"
    assert not agenda.others_wait("crowd")
    agenda.add("small/a", 1.0)
    agenda.add("small/b", 1.0)
    assert agenda.others_wait("crowd")
    agenda.done(first)
    assert [agenda.take() for _ in range(5)] == [
        "crowd/1",
        "small/a",
        "crowd/2",
        "small/b",
        "crowd/3",
    ]
    assert (agenda.ready, agenda.since) == (996, 0.0)


def test_the_first_key_s_age_counts_from_its_first_coming() -> None:
    """Adding it again does not make it younger, nor does coming back from work."""
    agenda = Agenda()
    seen = []
    agenda.add("a", 1.0)
    agenda.add("a", 5.0)
    seen.append(agenda.since)
    agenda.take()
    agenda.add("a", 6.0)
    agenda.add("a", 7.0)
    seen.append(agenda.since)
    agenda.done("a")
    seen.append(agenda.since)
    assert seen == [1.0, None, 6.0]


def test_a_key_that_comes_ever_nearer_leaves_no_heap_of_old_times() -> None:
    """Memory goes with the keys, not with the calls."""
    agenda = Agenda()
    for number in range(10_000):
        agenda.add_at("a", 20_000.0 - number)
    assert len(agenda._heap) < 200  # noqa: SLF001
    agenda.wake(10_001.0)
    assert agenda.take() == "a"
    agenda.wake(30_000.0)
    assert (agenda.next_due, agenda.ready) == (None, 0)


def test_done_with_what_was_not_in_work_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Agenda().done("a")
