"""A limiter is bounded: in number, in time, and in what its bodies hold."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from itertools import permutations

import pytest

from webhook.server.connection_limiter import (
    DOOR_SECONDS,
    SILENT_SECONDS,
    WRITE_SECONDS,
    Connection,
    ConnectionLimiter,
    Reason,
    Stage,
)


class Door:
    """A limiter at a clock that the test sets, and the far ends of its connections."""

    def __init__(self, limit: int, held_bytes: int = 100) -> None:
        self.now = 0.0
        self.ended: list[Reason] = []
        self.limiter = ConnectionLimiter(
            limit,
            held_bytes=held_bytes,
            clock=lambda: self.now,
            on_ended=self.ended.append,
        )
        self._sockets: list[socket.socket] = []
        self._far: dict[Connection, socket.socket] = {}

    def admit(self) -> Connection:
        """One more connection, a second later, which says nothing yet."""
        self.now += 1
        near, far = socket.socketpair()
        self._sockets += [near, far]
        client = self.limiter.admit(near)
        self._far[client] = far
        return client

    def client(
        self, *, stage: Stage = Stage.NEW, answered: bool = False, busy: bool = False
    ) -> Connection:
        """One more connection that has spoken, and what it is at."""
        client = self.at_the_door()
        assert self.limiter.call_in(client)
        self.limiter.advance(client, Stage.ANSWERED if answered else stage)
        self.limiter.mark(client, busy=busy)
        return client

    def at_the_door(self) -> Connection:
        client = self.admit()
        assert self.limiter.received_bytes(client)
        return client

    def sends(self, client: Connection, count: int) -> None:
        """A client that is reading a body has so many more bytes of it."""
        client.reading = True
        self.limiter.took(client, count)

    def writes(self, client: Connection) -> None:
        """A client sends a byte that the server does not read."""
        self._far[client].send(b"x")

    def closed(self, client: Connection) -> bool:
        far = self._far[client]
        far.setblocking(False)
        try:
            return far.recv(1) == b""
        except BlockingIOError:
            return False

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.fixture
def door() -> Iterator[Door]:
    """One with room for three."""
    made = Door(3)
    yield made
    made.close()


def test_beyond_the_limit_the_one_that_has_waited_longest_goes(door: Door) -> None:
    first, second, third, fourth = (door.client() for _ in range(4))
    assert door.closed(first)
    assert not any(door.closed(each) for each in (second, third, fourth))
    assert door.limiter.connections == 3
    assert door.ended == ["crowded"]


def test_who_says_nothing_pushes_out_only_those_who_say_nothing(door: Door) -> None:
    """However many they are, and however long others have been idle."""
    known = [door.client(answered=True) for _ in range(3)]
    silent = [door.admit() for _ in range(5)]
    assert not any(door.closed(each) for each in known)
    assert [door.closed(each) for each in silent] == [True, True, False, False, False]
    assert door.ended == ["crowded"] * 2
    assert door.limiter.connections == 6


@pytest.mark.parametrize(
    ("crowded", "other"), list(permutations((Stage.SHAKING, Stage.NEW, Stage.ANSWERED), 2))
)
def test_a_crowd_leaves_their_share_to_those_at_another_stage(crowded: Stage, other: Stage) -> None:
    """Wherever it stops: newcomers can be served, and connections that are used can stay."""
    door = Door(10)
    for _ in range(10):
        door.client(stage=crowded)
    few = [door.client(stage=other) for _ in range(2)]
    more = [door.client(stage=crowded) for _ in range(30)]
    assert not any(door.closed(each) for each in few)
    assert not door.closed(more[-1])
    assert door.limiter.connections == 10
    door.close()


def test_idle_answered_connections_and_silent_ones_together_keep_no_newcomer_out() -> None:
    """A newcomer has the time in which as many others come as his stage has places."""
    door = Door(10)
    for _ in range(10):
        door.client(answered=True)
    newcomer = door.admit()
    for _ in range(9):
        door.admit()
    assert door.limiter.received_bytes(newcomer)
    for _ in range(100):
        door.admit()
    assert not door.closed(newcomer)
    door.close()


def test_a_place_is_not_given_to_who_was_closed_before(door: Door) -> None:
    """It was silent for too long, or while too many came."""
    first, *_ = (door.admit() for _ in range(4))
    assert door.closed(first)
    assert not door.limiter.received_bytes(first)
    last = door.admit()
    door.now += SILENT_SECONDS
    door.limiter.sweep()
    assert door.closed(last)
    assert not door.limiter.received_bytes(last)
    assert door.limiter.connections == 0


def test_without_descriptors_who_says_nothing_goes_first(door: Door) -> None:
    """It has least to lose."""
    known, silent = door.client(answered=True), door.admit()
    door.limiter.make_room()
    assert (door.closed(known), door.closed(silent)) == (False, True)
    door.limiter.make_room()
    assert door.closed(known)


def test_the_longest_idle_goes_where_all_were_answered(door: Door) -> None:
    """So that a limiter which was answered once keeps nobody out either."""
    first, second, _ = (door.client(answered=True) for _ in range(3))
    first.since = door.now + 1
    door.client()
    assert door.closed(second)
    assert not door.closed(first)


def test_a_request_that_came_and_is_not_read_yet_keeps_its_connection(door: Door) -> None:
    """On a busy machine the API server writes to a connection that looks idle.

    If all have sent something, the longest idle goes, so that there is room.
    """
    first, second, third = (door.client(answered=True) for _ in range(3))
    door.writes(first)
    fourth = door.client(answered=True)
    assert [door.closed(each) for each in (first, second, third)] == [False, True, False]
    for each in (third, fourth):
        door.writes(each)
    door.client(answered=True)
    assert [door.closed(each) for each in (first, third, fourth)] == [True, False, False]


async def test_who_is_closed_sees_it_at_once() -> None:
    """Not an iteration of the loop later, in which it might send a request that is then lost."""
    near, far = socket.socketpair()
    with near, far:
        far.setblocking(False)
        client = Connection(near, 0.0)
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
            asyncio.Protocol, near
        )
        client.transport = transport
        client.end()
        assert far.recv(1) == b""


def test_who_waits_for_an_answer_is_never_closed(door: Door) -> None:
    """If all do, the one who comes is sent away."""
    busy = [door.client(busy=True) for _ in range(3)]
    newcomer = door.at_the_door()
    assert not door.limiter.call_in(newcomer)
    assert door.closed(newcomer)
    assert not any(door.closed(each) for each in busy)
    assert door.limiter.busy == 3
    door.limiter.mark(busy[1], busy=False)
    door.client()
    assert door.closed(busy[1])
    assert door.limiter.busy == 2


def test_new_connections_do_not_displace_recent_ones_without_handshakes() -> None:
    """The first of those that never send a whole request go, whatever stage has most."""
    door = Door(10)
    stalled = [door.client(stage=Stage.NEW) for _ in range(10)]
    probe = door.at_the_door()
    assert door.limiter.call_in(probe, Stage.NEW)
    for _ in range(8):
        assert door.limiter.call_in(door.at_the_door(), Stage.NEW)
    assert [door.closed(each) for each in stalled] == [True] * 9 + [False]
    door.limiter.mark(probe, busy=True)
    for _ in range(30):
        assert door.limiter.call_in(door.at_the_door(), Stage.NEW)
    assert not door.closed(probe)
    door.close()


def test_who_waited_too_long_at_the_door_is_not_called_in(door: Door) -> None:
    """The wait for the handshake begins again for those who are."""
    client = door.at_the_door()
    door.now += DOOR_SECONDS
    assert door.limiter.call_in(client)
    assert client.since == door.now
    late = door.at_the_door()
    door.now += DOOR_SECONDS + 0.1
    assert not door.limiter.call_in(late)
    assert door.closed(late)
    assert door.limiter.connections == 1
    assert door.ended == ["late"]


def test_who_was_closed_at_the_door_is_not_called_in(door: Door) -> None:
    first, *_ = (door.at_the_door() for _ in range(4))
    assert not door.limiter.call_in(first)
    assert door.ended == ["crowded"]


def test_who_waits_at_the_door_takes_no_place_and_is_not_pushed_out_by_the_silent(
    door: Door,
) -> None:
    """He is let in when it is his turn, however many come behind him."""
    inside = [door.client(answered=True) for _ in range(3)]
    waiting = [door.at_the_door() for _ in range(3)]
    for _ in range(20):
        door.admit()
    assert not any(door.closed(each) for each in inside + waiting)


def test_who_is_gone_counts_no_more(door: Door) -> None:
    client = door.client(busy=True)
    door.sends(client, 50)
    for _ in range(2):
        door.limiter.release(client)
        assert (door.limiter.connections, door.limiter.busy) == (0, 0)
    door.sends(door.client(), 100)
    assert not door.limiter.full()


def test_a_deadline_that_is_over_closes_the_connection(door: Door) -> None:
    slow, quick = door.client(), door.client()
    slow.deadline, quick.deadline = 10, 11
    door.now = 10
    door.limiter.sweep()
    assert door.closed(slow)
    assert not door.closed(quick)
    assert door.ended == ["slow"]


def test_bodies_that_hold_too_much_cost_the_slowest_sender_its_connection(door: Door) -> None:
    """And not the one whose bytes were too many: it came last."""
    slow, other, quick = door.client(), door.client(), door.client()
    door.sends(slow, 60)
    door.sends(other, 40)
    door.sends(quick, 1)
    assert door.closed(slow)
    assert not door.closed(other)
    assert not door.limiter.full()
    assert door.ended == ["large"]


def test_bodies_of_whole_requests_hold_too_much_until_they_are_answered(door: Door) -> None:
    """They are not closed: meanwhile no more requests should be taken."""
    busy = door.client(busy=True)
    door.sends(busy, 101)
    assert door.closed(busy)
    busy = door.client()
    busy.reading = False
    door.limiter.took(busy, 101)
    assert not door.closed(busy)
    assert door.limiter.full()
    door.limiter.freed(busy)
    assert not door.limiter.full()


def test_an_answer_has_a_time_to_be_read_however_it_trickles(door: Door) -> None:
    """It begins with the first byte that is not written, and ends when all are."""
    read, trickled = door.client(answered=True), door.client(answered=True)
    for client in (read, trickled):
        door.limiter.left_unwritten(client, 50)
    door.now += WRITE_SECONDS - 1
    door.limiter.left_unwritten(read, 0)
    door.limiter.left_unwritten(trickled, 1)
    door.now += 1
    door.limiter.sweep()
    assert door.ended == ["unread"]
    assert door.closed(trickled)
    assert not door.closed(read)


def test_answers_that_are_not_read_count_as_bodies_do(door: Door) -> None:
    first, second, sender = door.client(answered=True), door.client(answered=True), door.client()
    door.limiter.left_unwritten(second, 60)
    door.sends(sender, 30)
    door.limiter.left_unwritten(first, 30)
    assert door.ended == ["large"]
    assert door.closed(first)
    assert not door.limiter.full()
    door.limiter.left_unwritten(second, 0)
    door.sends(sender, 70)
    assert door.ended == ["large"]


def test_what_a_closed_connection_has_is_not_counted(door: Door) -> None:
    """Its protocol may hear of the end only later."""
    client = door.client()
    door.limiter.end(client, "pipelined")
    door.sends(client, 101)
    door.limiter.left_unwritten(client, 101)
    assert not door.limiter.full()
    assert door.ended == ["pipelined"]


def test_in_the_end_all_are_closed(door: Door) -> None:
    clients = [door.client() for _ in range(3)]
    door.limiter.end_all()
    assert all(door.closed(each) for each in clients)
    assert (door.limiter.connections, door.ended) == (0, [])
