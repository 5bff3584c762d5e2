"""One replica gets five times the reviews that it can answer."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench import pods, reviews
from tests.chaos.arena import Arena, served
from tests.chaos.connection import Pool, post
from tests.chaos.ledger import NEVER, Ledger
from tests.chaos.load import PATIENCE
from tests.chaos.replica import Replica
from tests.chaos.stage import Scenario, Stage, Tally, meanwhile
from tests.chaos.wire import PORT
from tests.fast_yaml import load_all_yaml
from webhook import names
from webhook.interception import PATH

OVERLOADS: Final = "overloads"
TIMES: Final = 5
OFFERED: Final = "reviews offered"
DECIDED: Final = "of them decided"
SHED: Final = "of them shed (503)"
TURNED_AWAY: Final = "of them turned away at the door"
UNANSWERED: Final = "of them not answered in time"
OTHER_ANSWERS: Final = "of them answered otherwise"
DEAD: Final = "replicas that did not stay up"
NOT_RECOVERED: Final = "overloads after which creations still failed in the end"
CAPACITY: Final = "reviews a second that it can do"
FACTOR: Final = "times that which was offered"
RECOVERY: Final = "seconds from the end to the last failed creation"
PEAK: Final = "MiB at most"
BEFORE: Final = "MiB before"

_DEPLOYMENT: Final = Path(__file__).parents[2] / "manifests" / "base" / "webhook.yaml"
# As an API server's: 3 s for a review.
_TIMEOUT: Final = 3.0
_PATIENCE: Final = 60.0
# So that whoever offers the load is not the bottleneck, everything is a tenth: of a core, as a CPU
# limit gives it, some of each period and then nothing, and of the requests in flight.
_RUNS, _RESTS = 0.01, 0.09
_IN_FLIGHT: Final = 60
_AFTERWARDS: Final = 4.0
# Callers by whether it is the short form. Their connections stand already: making them is another
# kind of load, by far the worse.
_AT_ONCE: Final = {True: 400, False: 800}
# Enough to keep it busy, and fewer than it may have in flight.
_CALLERS: Final = 40


@dataclass
class _Flood:
    """Reviews posted to a replica itself, as many API servers would post them."""

    pool: Pool
    request: bytes
    at_once: int
    # By status, or by what came instead of an answer.
    answers: Counter[int | str] = field(default_factory=Counter)
    offered: int = 0
    _now: int = 0

    async def closed_loop(self, callers: int, seconds: float) -> float:
        """How many a second are answered if each caller waits for its answer."""
        over = time.monotonic() + seconds
        done = 0

        async def call() -> None:
            nonlocal done
            while time.monotonic() < over:
                answer = await self.pool.ask(self.request)
                done += answer.status == 200

        await asyncio.gather(*(call() for _ in range(callers)))
        return done / seconds

    async def open_loop(self, rate: float, seconds: float) -> None:
        """Offer so many a second, whatever the answers."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            number = 0
            while number < rate * seconds:
                ahead = began + number / rate - time.monotonic()
                if ahead > 0:
                    await asyncio.sleep(min(ahead, 0.05))
                    continue
                number += 1
                if self._now < self.at_once:
                    self._now += 1
                    self.offered += 1
                    group.create_task(self._one())
                if number % 50 == 0:
                    await asyncio.sleep(0)

    async def rush(self, replica: Replica) -> None:
        """All callers in the same moment, as a replica finds them that stood still."""
        replica.stand_still()
        self.offered += self.at_once
        self._now += self.at_once
        asked = [asyncio.ensure_future(self._one(_PATIENCE)) for _ in range(self.at_once)]
        await asyncio.sleep(0.5)
        replica.go_on()
        await asyncio.gather(*asked)

    async def _one(self, patience: float = _TIMEOUT) -> None:
        try:
            async with asyncio.timeout(patience):
                self.answers[(await self.pool.ask(self.request)).status] += 1
        except TimeoutError:
            self.answers[UNANSWERED] += 1
        except (OSError, EOFError):
            self.answers[TURNED_AWAY] += 1
        finally:
            self._now -= 1


def play(stage: Stage) -> Tally:
    """Find out what it can do, offer five times that, and see that creations go on afterwards."""
    tally = Tally()
    seconds = 4 if stage.short else 20
    options = ("--max-in-flight", str(_IN_FLIGHT))
    with served(stage, count=1, options=options) as place:
        [replica] = place.replicas
        with place.loaded() as ledger, watched(replica) as peak:
            tally.measure(BEFORE, replica.memory())
            for _ in range(stage.rounds):
                flood = _flood(place, replica)
                capacity, times, ended = asyncio.run(_overload(flood, replica, seconds))
                _count(flood, tally)
                tally.measure(CAPACITY, capacity)
                tally.measure(FACTOR, times)
                tally.count(NOT_RECOVERED, not _recovers(ledger, ended))
                last = [each for each in ledger.creations if each.answered and each.matched]
                trouble = [each.sent for each in last if not each.created]
                tally.measure(RECOVERY, max(0.0, max(trouble, default=ended) - ended))
                tally.count(OVERLOADS)
                stage.say(f"{capacity:.0f} a second, overloaded: {dict(flood.answers)}")
        tally.measure(PEAK, max(peak))
        tally.count(DEAD, replica.process.exit_code is not None)
        tally.add(ledger.tally())
    return tally


def _recovers(ledger: Ledger, ended: float) -> bool:
    """Wait until the newest creation of a run's pod that has an answer is created.

    False if that does not happen within the time in which any creation gets an answer.
    """
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        newest = [each for each in ledger.creations if each.answered and each.matched][-1]
        if newest.created and newest.sent > ended:
            return True
        time.sleep(0.1)
    return False


async def _overload(flood: _Flood, replica: Replica, seconds: float) -> tuple[float, float, float]:
    """What it can do, how many times that was offered, and when the offering ended."""
    await flood.pool.fill(flood.at_once)
    await flood.rush(replica)
    with _throttled(replica):
        capacity = await flood.closed_loop(_CALLERS, 3)
        already = flood.offered
        await flood.open_loop(TIMES * capacity, seconds)
        times = (flood.offered - already) / seconds / capacity
        ended = time.monotonic()
        flood.pool.close()
        await asyncio.sleep(_AFTERWARDS)
    return capacity, times, ended


def _flood(place: Arena, replica: Replica) -> _Flood:
    context = ssl.create_default_context(cadata=place.authority.decode())
    name = f"{names.WEBHOOK}.{names.NAMESPACE}.svc"
    review = reviews.review(reviews.as_sent(pods.manifest(10_000)), "a-review")
    request = post(f"{PATH}?timeout=3s", review, name)
    pool = Pool(replica.address, PORT, context, name)
    return _Flood(pool, request, _AT_ONCE[place.stage.short])


def _count(flood: _Flood, tally: Tally) -> None:
    answers = flood.answers
    tally.count(OFFERED, flood.offered)
    tally.count(DECIDED, answers[200])
    tally.count(SHED, answers[503])
    for what in (TURNED_AWAY, UNANSWERED):
        tally.count(what, answers[what])
    told = (200, 503, TURNED_AWAY, UNANSWERED)
    tally.count(OTHER_ANSWERS, answers.total() - sum(answers[each] for each in told))


@contextmanager
def _throttled(replica: Replica) -> Iterator[None]:
    """Give the replica a fifth of a core meanwhile."""

    def rest() -> None:
        replica.stand_still()
        time.sleep(_RESTS)
        replica.go_on()

    with meanwhile(rest, _RUNS):
        yield


@contextmanager
def watched(replica: Replica) -> Iterator[list[float]]:
    """The replica's memory in MiB, ten times a second."""
    seen: list[float] = [replica.memory()]
    with meanwhile(lambda: seen.append(replica.memory()), 0.1):
        yield seen


def memory_limit() -> float:
    """MiB that a replica may have, by its Deployment."""
    documents = load_all_yaml(_DEPLOYMENT.read_text())
    [pod] = [each["spec"]["template"]["spec"] for each in documents if each["kind"] == "Deployment"]
    text: str = pod["containers"][0]["resources"]["limits"]["memory"]
    return float(text.removesuffix("Mi"))


def too_much_memory(tally: Tally) -> list[str]:
    """What is said of memory above the limit of the Deployment."""
    peak, most = max(tally.measures[PEAK]), memory_limit()
    return [f"{PEAK}: {peak:.0f}, and its limit is {most:.0f}"] if peak > most else []


def _more(tally: Tally) -> list[str]:
    """It sheds, and stays within its memory."""
    return [*([] if tally[SHED] else [f"{SHED}: 0"]), *too_much_memory(tally)]


SCENARIO: Final = Scenario(
    name="overload",
    does="five times the reviews that one replica can answer",
    unit=OVERLOADS,
    long=(5,),
    short=1,
    play=play,
    none=(*NEVER, OTHER_ANSWERS, DEAD, NOT_RECOVERED),
    more=_more,
)
