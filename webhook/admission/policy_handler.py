"""Judges writes of policies, classes and exceptions: from a review's bytes to the answer."""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from webhook.admission import policy_review, review
from webhook.admission.advice import fitting
from webhook.admission.handler import Reply, problem
from webhook.errors import ClusterError, InvalidReview, NotSynced
from webhook.policy.written.write import Judgement, Write

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webhook.admission.policy_review import PolicyRequest
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.written.judge import Judge

_logger = logging.getLogger(__name__)

Outcome: TypeAlias = Literal["allowed", "warned", "refused", "unjudged"]
# Seconds for reading all objects anew; the API server waits five for the whole answer.
PATIENCE: Final = 3.0
# Seconds from the beginning of one such read to that of the next. Who asks in between waits for
# the next: one that began before the write may lack what was written just before it.
READ_PAUSE: Final = 1.0
# Writes that are judged at one time. Whoever reaches the port can post some, and each is in flight
# until it is answered; pods must keep nearly all of that.
MOST_JUDGED: Final = 8
# Bytes of an object as the set has it. One that is wrong in each of its parts takes a second to
# judge and a hundred times its bytes for each 20,000; the largest that ships has three thousand.
MOST_BYTES: Final = 64 * 1024


class Observer(Protocol):
    """What counts; called on the event loop's thread."""

    def policy_write_judged(self, outcome: Outcome) -> None:
        """One write was judged, or could not be."""

    def engine_failed(self) -> None:
        """One judgement ended in an exception."""


class Objects(Protocol):
    """The objects of the policy set that serves."""

    def text_of(self, resource: str, seen: JsonObject) -> bytes:
        """What the set is made of, of an object of this resource."""

    def known(self) -> Mapping[str, bytes] | None:
        """The text of each, by resource and name, as a watch tells; None if it does not."""

    async def live(self) -> Mapping[str, bytes]:
        """The same, read now. Raises ClusterError."""


class _SharedReads:
    """Reads that all share who ask before one begins: one at a time, and at a pace.

    `pause` is the seconds from the beginning of one to that of the next; `patience` those that a
    read may take.
    """

    def __init__(
        self, read: Callable[[], Awaitable[Mapping[str, bytes]]], pause: float, patience: float
    ) -> None:
        self._read = read
        self._pause = pause
        self._patience = patience
        self._turn = asyncio.Lock()
        self._began = -math.inf
        self._next: asyncio.Task[Mapping[str, bytes]] | None = None

    async def read(self) -> Mapping[str, bytes]:
        """What a read finds that begins after this call. Raises ClusterError and TimeoutError."""
        if self._next is None:
            self._next = asyncio.create_task(self._begin())
            # If all who asked have gone, nobody else takes note of an error.
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._next)

    async def _begin(self) -> Mapping[str, bytes]:
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(self._began + self._pause - loop.time())
            self._began = loop.time()
            self._next = None
            async with asyncio.timeout(self._patience):
                return await self._read()


class PolicyHandler:
    """Answers reviews of writes. `resources` are those that are judged.

    Judged by what the watch knows; but a watch lags behind, so nothing is refused before all has
    been read anew. `nodes` gives the cluster's, None if they are not known. `patience` is in
    seconds, and so is `read_pause`, from one read to the next.
    """

    def __init__(
        self,
        *,
        resources: Sequence[str],
        objects: Objects,
        judge: Judge,
        observer: Observer,
        nodes: Callable[[], Sequence[Node] | None] = lambda: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        patience: float = PATIENCE,
        read_pause: float = READ_PAUSE,
    ) -> None:
        self._resources = frozenset(resources)
        self._objects = objects
        self._reads = _SharedReads(objects.live, read_pause, patience)
        self._judge = judge
        self._observer = observer
        self._nodes = nodes
        self._now = now
        self._patience = patience
        # The judge remembers, and is not for several threads.
        self._turn = asyncio.Lock()
        self._judging = 0
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many writes wait for a live read."""
        return self._waiting

    async def handle(self, body: bytes) -> Reply:
        """The answer to the body of one POST. Raises nothing."""
        uid = ""
        try:
            request = policy_review.parse(body, self._resources)
            uid = request.uid
            write = self._write(request)
            # An object that was read takes many times its bytes, and many may wait.
            request = replace(request, old=None, new=None)
            return self._answer(request, await self._judgement(write))
        except (InvalidReview, RecursionError) as error:
            reason = str(error) if isinstance(error, InvalidReview) else "nested too deeply"
            _logger.warning("invalid review of a policy", extra={"uid": uid, "reason": reason})
            self._observer.policy_write_judged("unjudged")
            return problem(400, "invalid", reason)
        except NotSynced as error:
            _logger.warning("policy not judged", extra={"uid": uid, "reason": str(error)})
            self._observer.policy_write_judged("unjudged")
            return problem(503, "not-synced", str(error), retry=True)
        except Exception:
            self._observer.engine_failed()
            self._observer.policy_write_judged("unjudged")
            _logger.exception("policy not judged", extra={"uid": uid})
            return problem(500, "error", f"an error of its own; its log has it under uid {uid}")

    def _write(self, request: PolicyRequest) -> Write:
        old = self._text(request.resource, request.old)
        new = self._text(request.resource, request.new)
        # One that was stored before it could be judged must go, be replaced, or be given a label.
        known = old if old is None or len(old) <= MOST_BYTES or old == new else None
        return Write(f"{request.resource}/{request.name}", known, new)

    async def _judgement(self, write: Write) -> Judgement:
        if write.changes_nothing:
            return Judgement()
        if write.new is not None and len(write.new) > MOST_BYTES:
            return Judgement(
                refusals=(
                    f"the object has {len(write.new)} bytes; at most {MOST_BYTES} are judged",
                )
            )
        if self._judging >= MOST_JUDGED:
            raise NotSynced(f"{self._judging} writes of policies are being judged; try again")
        self._judging += 1
        try:
            return await self._judge_write(write)
        finally:
            self._judging -= 1

    async def _judge_write(self, write: Write) -> Judgement:
        known = self._objects.known()
        if known is not None:
            found = await self._look(known, write)
            if not found.refusals:
                return found
        return await self._look(await self._live(), write)

    async def _live(self) -> Mapping[str, bytes]:
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                return await self._reads.read()
        except (ClusterError, TimeoutError) as error:
            why = str(error) or f"no answer within {self._patience:g} s"
            raise NotSynced(f"the policies that there are cannot be read: {why}") from error
        finally:
            self._waiting -= 1

    async def _look(self, objects: Mapping[str, bytes], write: Write) -> Judgement:
        nodes, now = self._nodes(), self._now()
        async with self._turn:
            # A thousand policies take a while, in which pods are decided on.
            return await asyncio.to_thread(
                lambda: self._judge.judge(objects, write, nodes=nodes, now=now)
            )

    def _text(self, resource: str, seen: JsonObject | None) -> bytes | None:
        return None if seen is None else self._objects.text_of(resource, seen)

    def _answer(self, request: PolicyRequest, judgement: Judgement) -> Reply:
        outcome: Outcome = (
            "refused" if judgement.refusals else "warned" if judgement.warnings else "allowed"
        )
        self._observer.policy_write_judged(outcome)
        level = logging.INFO if judgement.refusals else logging.DEBUG
        _logger.log(level, "policy judged", extra=_line(request, judgement, outcome))
        body = review.answer(
            request.uid,
            allowed=not judgement.refusals,
            message=_message(judgement.refusals),
            warnings=fitting(list(judgement.warnings), "`fairlead check` prints all of them"),
        )
        return Reply(200, f"policy-{outcome}", body)


def _message(refusals: Sequence[str]) -> str:
    if len(refusals) < 2:
        return f"fairlead: {refusals[0]}" if refusals else ""
    return f"fairlead: {len(refusals)} errors:\n" + "\n".join(f"- {each}" for each in refusals)


def _line(request: PolicyRequest, judgement: Judgement, outcome: Outcome) -> dict[str, object]:
    """What is logged of a write. Never what the object says."""
    line: dict[str, object] = {
        "uid": request.uid,
        "object": f"{request.resource}/{request.name}",
        "operation": request.operation,
        "user": request.user,
        "outcome": outcome,
        "errors": len(judgement.refusals),
        "warnings": len(judgement.warnings),
    }
    if request.dry_run:
        line["dry_run"] = True
    return line
