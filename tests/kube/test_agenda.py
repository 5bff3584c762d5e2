"""The order of keys, beside a model of a few lines that shares no code with it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.kube.work_queue import Agenda

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
