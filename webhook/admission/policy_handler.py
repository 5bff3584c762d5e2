"""Handle a review of a policy, class or exception: from bytes to the answer."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from webhook import names
from webhook.admission import review
from webhook.admission.handler import Reply, problem
from webhook.cluster_objects.policy_objects import text_of
from webhook.decision.advice import fitting
from webhook.errors import ClusterError, InvalidReview, NotSynced
from webhook.judgement.set_judgement import MOST_BYTES, size_fault
from webhook.judgement.write_judge import Judgement, Write
from webhook.metric_names import ENGINE_ERRORS, POLICY_WRITES
from webhook.turns import SharedCalls, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from webhook.admission.handler import Observer
    from webhook.cluster_objects.policy_objects import PolicyObjects
    from webhook.judgement.write_judge import Judge
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject

_logger = logging.getLogger(__name__)

Outcome: TypeAlias = Literal["allowed", "warned", "refused", "unjudged"]
# Seconds for reading all objects again; the API server waits five for the whole answer. A third of
# it is for reading a definition before that.
READ_TIMEOUT_SECONDS: Final = 3.0
# Seconds between the starts of two such reads. A caller in between waits for the next read: one
# that started before the write may lack an object that was written just before it.
READ_PAUSE: Final = 1.0
# Writes that are judged concurrently. Every client of the port can post writes, and each one
# counts as in flight until it is answered. Pods must keep most of the in-flight limit.
MOST_JUDGED: Final = 8
# Additional places for users without a write in progress, so that one user cannot block others.
SPARE: Final = 4
# Which of the two objects the review of each operation has (admission/v1 types.go).
_NEW: Final = ("CREATE", "UPDATE")
_OLD: Final = ("UPDATE", "DELETE")
# Answers of the API server to a read that do not change by themselves: a right is missing.
_LASTING: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """A write of an object, by resource and name; `user` is the authenticated user.

    `old` is the stored object, None for a creation; `new` is the new one, None for a deletion.
    """

    uid: str
    operation: str
    resource: str
    name: str
    user: str
    dry_run: bool
    old: JsonObject | None
    new: JsonObject | None


def parse_write(body: bytes, resources: Collection[str]) -> PolicyRequest:
    """Return the write, of one of these resources. Raises InvalidReview with the reason."""
    request = review.parse_review(body)
    operation = request.get("operation")
    if operation not in (*_NEW, *_OLD):
        raw = str(operation)[:50]
        raise InvalidReview(f"request.operation: want CREATE, UPDATE or DELETE, not {raw!r}")
    target = review.member(request, "resource", dict, "request.resource")
    resource = review.optional(target, "resource", "request.resource.resource")
    if target.get("group") != names.GROUP or resource not in resources:
        wanted = ", ".join(sorted(resources))
        raise InvalidReview(
            f"request.resource: want {wanted} of {names.GROUP}, not {str(resource)[:50]!r}"
        )
    if request.get("subResource"):
        raise InvalidReview("request.subResource: want the object itself")
    new = _object(request, "object") if operation in _NEW else None
    old = _object(request, "oldObject") if operation in _OLD else None
    metadata = review.member((old or new or {}), "metadata", dict, "request.object.metadata")
    user = review.member(request, "userInfo", dict, "request.userInfo")
    return PolicyRequest(
        uid=request["uid"],
        operation=str(operation),
        resource=resource,
        # The request to delete a collection has no name, but each object has.
        name=review.name_in(metadata, "name", "request.object.metadata.name"),
        user=review.optional(user, "username", "request.userInfo.username"),
        dry_run=request.get("dryRun") is True,
        old=old,
        new=new,
    )


def _object(request: JsonObject, member: str) -> JsonObject:
    document: JsonObject = review.member(request, member, dict, f"request.{member}")
    metadata = review.member(document, "metadata", dict, f"request.{member}.metadata")
    review.member(metadata, "name", str, f"request.{member}.metadata.name")
    return document


@dataclass(eq=False, repr=False, slots=True)
class PolicyHandler:
    """Answer reviews of writes to `resources`.

    A write is judged against the watch's state. A watch lags behind, so a write is refused only
    after all objects are read live. `nodes` returns the cluster's nodes, None if unknown, and
    `classes` the names of its classes by kind, as far as they are known.
    `patience` and `read_pause` (between two reads) are in seconds. `waiting` is the number of
    writes that wait for a live read.
    """

    _: KW_ONLY
    resources: Collection[str]
    objects: PolicyObjects[bytes]
    judge: Judge
    observer: Observer
    nodes: Callable[[], Sequence[Node] | None] = lambda: None
    classes: Callable[[], Mapping[str, Mapping[str, JsonObject]]] = dict
    patience: float = READ_TIMEOUT_SECONDS
    read_pause: float = READ_PAUSE
    waiting: int = field(default=0, init=False)
    _reads: SharedCalls[Mapping[str, bytes]] = field(init=False)
    # The judge keeps a cache and is not thread-safe.
    _turns: Window = field(default_factory=lambda: Window(1), init=False)
    _judging: Counter[str] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        self._reads = SharedCalls(self.read_pause)

    async def handle(self, body: bytes) -> Reply:
        """Return the answer to the body of one POST. Raises nothing."""
        uid = ""
        try:
            request = parse_write(body, self.resources)
            uid = request.uid
            write = self._write(request)
            # Who deletes an object removes its finalizers by an update.
            deleting = "deletionTimestamp" in (request.new or request.old or {})["metadata"]
            stores = request.new is not None and not deleting
            # A parsed object takes many times its bytes, and many requests may wait here.
            request = replace(request, old=None, new=None)
            return self._answer(request, await self._judgement(write, request.user, stores=stores))
        except (InvalidReview, RecursionError) as error:
            reason = str(error) if isinstance(error, InvalidReview) else "nested too deeply"
            _logger.warning("invalid review of a policy", extra={"uid": uid, "reason": reason})
            self.observer.count(POLICY_WRITES, "unjudged")
            return problem(400, "invalid", reason)
        except NotSynced as error:
            _logger.warning("policy not judged", extra={"uid": uid, "reason": str(error)})
            self.observer.count(POLICY_WRITES, "unjudged")
            cause = error.__cause__
            if isinstance(cause, ClusterError) and cause.status in _LASTING:
                # Another attempt would end as this one, when the API server's time is over.
                message = f"fairlead: the write cannot be judged: {error}"
                body = review.answer(uid, allowed=False, message=message)
                return Reply(200, "policy-unjudged", body)
            return problem(503, "not-synced", str(error), retry=True)
        except Exception:
            self.observer.count(ENGINE_ERRORS)
            self.observer.count(POLICY_WRITES, "unjudged")
            _logger.exception("policy not judged", extra={"uid": uid})
            return problem(500, "error", f"an error of its own; its log has it under uid {uid}")

    def _write(self, request: PolicyRequest) -> Write:
        old, new = (
            None if raw is None else text_of(request.resource, raw)
            for raw in (request.old, request.new)
        )
        # A stored object that is too large can still be deleted, replaced or labelled.
        old_body = old if old is None or len(old) <= MOST_BYTES or old == new else None
        return Write(f"{request.resource}/{request.name}", old_body, new)

    async def _judgement(self, write: Write, user: str, *, stores: bool) -> Judgement:
        """Return the judgement of a write; `stores`: an object is stored that stays."""
        if write.changes_nothing and not stores:
            return Judgement()
        if (
            not write.changes_nothing
            and write.new is not None
            and (reason := size_fault(len(write.new)))
        ):
            return Judgement(refusals=(reason,))
        judging = self._judging.total()
        if judging >= (MOST_JUDGED if self._judging[user] else MOST_JUDGED + SPARE):
            raise NotSynced(f"{judging} writes of policies are being judged; try again")
        self._judging[user] += 1
        try:
            if stores and (reason := await self._dropped(write.place)):
                # Also of a label alone: the API server stores the object without the field.
                return Judgement(refusals=(reason,))
            return Judgement() if write.changes_nothing else await self._judge_write(write, user)
        finally:
            self._judging[user] -= 1
            if not self._judging[user]:
                # User names may be forged, so the counter must not grow without bound.
                del self._judging[user]

    async def _dropped(self, place: str) -> str:
        try:
            async with asyncio.timeout(self.patience / 3):
                return await self.objects.dropped(place.partition("/")[0])
        except (ClusterError, TimeoutError) as error:
            why = str(error) or f"no answer within {self.patience / 3:g} s"
            raise NotSynced(f"the definitions cannot be read: {why}") from error

    async def _judge_write(self, write: Write, user: str) -> Judgement:
        current_objects = self.objects.known()
        if current_objects is not None:
            judgement = await self._judge_against(current_objects, write, user)
            if not judgement.refusals:
                return judgement
        return await self._judge_against(await self._live(), write, user)

    async def _live(self) -> Mapping[str, bytes]:
        self.waiting += 1
        try:
            async with asyncio.timeout(self.patience):
                live = self.objects.live
                return await self._reads.share("", lambda: asyncio.wait_for(live(), self.patience))
        except (ClusterError, TimeoutError) as error:
            why = str(error) or f"no answer within {self.patience:g} s"
            raise NotSynced(f"the policies that there are cannot be read: {why}") from error
        finally:
            self.waiting -= 1

    async def _judge_against(
        self, objects: Mapping[str, bytes], write: Write, user: str
    ) -> Judgement:
        nodes, classes, now = self.nodes(), self.classes(), datetime.now(UTC)
        async with self._turns.turn(user):
            # A thousand policies take a while; the event loop decides on pods meanwhile.
            return await asyncio.to_thread(
                lambda: self.judge.judge(objects, write, nodes=nodes, classes=classes, now=now)
            )

    def _answer(self, request: PolicyRequest, judgement: Judgement) -> Reply:
        outcome: Outcome = (
            "refused" if judgement.refusals else "warned" if judgement.warnings else "allowed"
        )
        self.observer.count(POLICY_WRITES, outcome)
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
    return f"fairlead: {len(refusals)} errors:\n" + "\n".join(
        f"- {refusal}" for refusal in refusals
    )


def _line(request: PolicyRequest, judgement: Judgement, outcome: Outcome) -> dict[str, object]:
    """Return the log fields of a write. The object's content is left out."""
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
