"""The pages, as a Starlette app."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, StringConvertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from webhook.cluster_objects.heartbeat import silence
from webhook.errors import FairleadError
from webhook.evaluation.answer import WORDS
from webhook.kube.watches import Watches
from webhook.policy import json_schema
from webhook.text.html import html_templates
from webhook.ui import playground, runs
from webhook.ui.assets import Assets
from webhook.ui.change import Changes
from webhook.ui.findings import explained, findings, placement_in_force
from webhook.ui.playground import MOST_BYTES, Question, Texts
from webhook.ui.pools import Pools
from webhook.ui.runs import Runs
from webhook.ui.shown_parts import ShownParts
from webhook.ui.worker import TooMuch, Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import Request

    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.ui.playground import Answer
    from webhook.ui.watching import Watching

    # What a template shows, for a request.
    Values = Callable[[Request], Awaitable[dict[str, Any]]]

# Seconds for one answer of the playground.
SECONDS: Final = 30.0
_TOO_LONG: Final = (
    f"the texts have over {MOST_BYTES // 1024} KiB: fairlead preview, explain and diff take more"
)
# Seconds after which it is read again whether placement is in force.
_PLACEMENT_SECONDS: Final = 30.0
# Seconds until the first look at a page is answered, whether all is read or not.
_FIRST_LOOK_SECONDS: Final = 5.0
_FOLDER: Final = Path(__file__).parent


class _Name(StringConvertor):
    """A part of an address that may be a name in Kubernetes."""

    regex = "[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?"


class _Number(IntegerConvertor):
    """An index of a replica."""

    regex = "[0-9]{1,5}"


register_url_convertor("name", _Name())
register_url_convertor("number", _Number())


@dataclass
class Pages:
    """What the pages show.

    texts: what the editors have at first, and nodes beside them; read_start: reads them of the
    cluster. kubeconfig: of the cluster, if its Runs are shown; namespace: of these Runs, all if it
    is empty. pieces: whether there is a page with each piece of the pages.
    """

    texts: Texts
    kubeconfig: Kubeconfig | None = None
    namespace: str = ""
    read_start: Callable[[Client], Awaitable[tuple[Texts, bytes]]] | None = None
    given_nodes: bytes = b""
    pieces: bool = False
    worker: Worker[Question, Answer] = field(
        default_factory=lambda: Worker(playground.answer, SECONDS)
    )
    # For what a key does not wait for.
    slow_worker: Worker[Question, Answer] = field(
        default_factory=lambda: Worker(playground.answer, SECONDS, yields=True)
    )

    def __post_init__(self) -> None:
        self.changes = Changes(self.texts, self.kubeconfig, self.namespace, self.given_nodes)
        # Set by `running`, if it has pages of a cluster.
        self._runs: Runs
        self._pools: Pools
        self._shown = ShownParts()
        self._placement = ("unknown", "")
        self._placement_read = -math.inf
        self._assets = Assets(_FOLDER / "static")
        self._templates = html_templates(_FOLDER / "templates")
        live = (
            [("/runs", "Runs"), ("/cluster", "Cluster"), ("/findings", "Findings")]
            if self.kubeconfig
            else []
        )
        always = [("/playground", "Playground"), ("/change", "Change")]
        self._templates.globals["pages"] = [*live, *always]
        self._templates.globals["only"] = self.namespace
        self._templates.globals["asset"] = self._assets.address

    def app(self) -> Starlette:
        """Return the app, without a guard."""
        run_path = "/runs/{namespace:name}/{name:name}"
        live = [
            *self._kept_current("/runs", "runs", lambda: self._runs, self._list),
            *self._kept_current(run_path, "run", lambda: self._runs, self._details),
            *self._kept_current(run_path + "/cost", "cost", lambda: self._runs, self._cost),
            *self._kept_current(
                run_path + "/{role:name}/{index:number}", "log", lambda: self._runs, self._log
            ),
            *self._kept_current("/cluster", "cluster", lambda: self._pools, self._overview),
            Route("/findings", self.findings),
            Route("/pods/{namespace:name}/{name:name}", self.explain),
        ]
        return Starlette(
            routes=[
                Route(
                    "/", lambda _: RedirectResponse("/runs" if self.kubeconfig else "/playground")
                ),
                Route("/playground", self.playground),
                Route("/playground/answer", self.answer, methods=["POST"]),
                Route("/schema.json", _schema),
                Route("/change", self.change),
                Route("/change", self.compare, methods=["POST"]),
                *(live if self.kubeconfig else []),
                *([Route("/pieces", self.show_pieces)] if self.pieces else []),
                Route("/static/{name}", self._assets.serve),
            ],
            middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch the cluster within the block, in which alone the app answers."""
        warming = asyncio.create_task(self._warm())
        try:
            if self.kubeconfig is None:
                yield
                return
            async with self.kubeconfig.client() as client, Watches(client) as watches:
                self._runs = Runs(watches, self.namespace)
                self._pools = Pools(watches, self.namespace)
                yield
        finally:
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
            self.worker.end()
            self.slow_worker.end()
            self.changes.end()

    async def _warm(self) -> None:
        """Ask the first question before a person does: it takes a second to begin."""

        async def gone() -> bool:
            return False

        with suppress(TooMuch):
            await self.worker.ask(Question(self.texts, self.texts.policies, self.given_nodes), gone)

    def _page(self, template: str, values: Mapping[str, Any], here: str = "") -> str:
        return self._templates.get_template(template).render({"here": here, **values})

    async def _read(self) -> None:
        """Read the texts of the start again, if they are a cluster's."""
        if self.read_start:
            self.texts, self.given_nodes = await self.read_start(self._runs.client)
            self.changes.texts, self.changes.given_nodes = self.texts, self.given_nodes

    async def show_pieces(self, _request: Request) -> Response:
        """Return the page with each piece of the pages."""
        return HTMLResponse(self._page("all_pieces.html", runs.example()))

    async def playground(self, _request: Request) -> Response:
        """Return the page itself, with the texts of the start."""
        await self._read()
        values = {"texts": self.texts._asdict(), "before": self.changes.places[0]}
        return HTMLResponse(self._page("playground.html", values, "/playground"))

    async def answer(self, request: Request) -> Response:
        """Return marks and HTML for the texts of a JSON body, or the part that it asks for."""
        try:
            question = Question.read(await _body(request), self.texts.policies, self.given_nodes)
        except TimeoutError:
            return _refused(HTTPStatus.REQUEST_TIMEOUT, f"no whole request in {SECONDS:g} s")
        except ValueError as error:
            return _refused(HTTPStatus.BAD_REQUEST, str(error))
        try:
            worker = self.slow_worker if question.part else self.worker
            answer = await worker.ask(question, request.is_disconnected)
        except TooMuch:
            why = f"no answer within {SECONDS:g} s: give fewer policies or objects"
            why += "; an error of the program is in the terminal"
            return _refused(HTTPStatus.SERVICE_UNAVAILABLE, why)
        values = answer._asdict()
        if question.part == "test":
            return JSONResponse({"test": answer.test})
        if question.part == "change":
            return JSONResponse({"html": self._page("answer_change.html", values)})
        findings = Counter(mark.severity for mark in answer.marks)
        checks = {"findings": findings.items(), "whole": answer.whole}
        of_marks = {
            "marks": [mark._asdict() for mark in answer.marks],
            "checks": self._page("checks.html", checks),
            "findings": self._page("marks.html", values),
        }
        if question.part == "findings":
            return JSONResponse(of_marks)
        parts = {
            "html": self._page("answer.html", values),
            "verdict": self._page("verdict.html", {"verdict": answer.verdict, "texts": WORDS}),
        }
        state = {"differs": answer.differs, "whole": answer.whole}
        return JSONResponse({**of_marks, **state, **parts})

    async def compare(self, request: Request) -> Response:
        """Compare what the form asks for, and lead to the page of it."""
        try:
            # Each byte of a form may need three.
            body = await _body(request, 3 * MOST_BYTES)
            given = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=10))
            if sum(map(len, given.values())) > MOST_BYTES:
                raise ValueError(_TOO_LONG)
        except (TimeoutError, ValueError) as error:
            values = self.changes.page({}, 1)
            values["problems"] = [str(error) or f"no whole request in {SECONDS:g} s"]
            return HTMLResponse(self._page("change.html", values, "/change"), 400)
        key = await self.changes.compare(given, request.is_disconnected)
        return RedirectResponse(f"/change?of={key}", HTTPStatus.SEE_OTHER)

    async def change(self, request: Request) -> Response:
        """Return the page of a comparison, or of none yet."""
        given = request.query_params
        if "of" not in given:
            await self._read()
        values = self.changes.page(given, _page_number(given))
        return HTMLResponse(self._page("change.html", values, "/change"))

    async def findings(self, _request: Request) -> Response:
        """Return the page of what is wrong now."""
        await self._current(self._pools)
        values = await findings(self._runs.client, self.namespace)
        values |= await self._pools.judged()
        return HTMLResponse(self._page("findings.html", values, "/findings"))

    async def explain(self, request: Request) -> Response:
        """Return why a pod is where it is, or is nowhere: what `fairlead explain pod` prints."""
        values = await explained(self._runs.client, **request.path_params)
        return HTMLResponse(self._page("pod.html", values, "/cluster"))

    async def _current(self, watching: Watching) -> None:
        """Begin to watch at the first look at a page."""
        if watching.begin():
            await watching.synced(_FIRST_LOOK_SECONDS)

    def _kept_current(
        self, path: str, template: str, watching: Callable[[], Watching], values: Values
    ) -> list[Route]:
        """Return the routes of a page and of its part that is kept current.

        The part is TEMPLATE_live.html, within the page TEMPLATE.html; both have the same values.
        """
        here = f"/{path.split('/')[1]}"

        async def page(request: Request) -> Response:
            page_values = {**await values(request), **request.path_params}
            page_values["query"] = str(request.query_params)
            return HTMLResponse(self._page(f"{template}.html", page_values, here))

        async def live(request: Request) -> Response:
            async def make() -> str:
                await self._current(watching())
                return self._page(f"{template}_live.html", await values(request))

            shown = await self._shown.look(str(request.url), watching().version, make)
            return shown.response(request.headers.get("if-none-match", ""))

        return [Route(path, page), Route(f"{path}/live", live)]

    async def _list(self, request: Request) -> dict[str, Any]:
        await self._current(self._runs)
        await self._current(self._pools)
        given = request.query_params
        words, phase = given.get("words", ""), given.get("phase", "")
        selected = self._runs.select(words, phase, _page_number(given), self._pools.by_run())
        return {
            "selected": selected,
            "words": words,
            "phase": phase,
            "trouble": self._runs.trouble,
            "without": "" if self._runs.trouble else self._pools.trouble,
            "silence": await self._silence() if selected.total else "",
        }

    async def _silence(self) -> str:
        """Return since when no controller has looked at Runs, as commands say it."""
        return await silence(self._runs.client, datetime.now(UTC))

    async def _details(self, request: Request) -> dict[str, Any]:
        await self._current(self._pools)
        place = request.path_params
        try:
            classes = self._pools.by_run().get((place["namespace"], place["name"]), "")
            details = await self._runs.details(**place)
            silence = "" if details["report"].ended else await self._silence()
            return {"trouble": "", "classes": classes, "silence": silence, **details}
        except FairleadError as error:
            return {"trouble": str(error), "silence": "", "report": None}

    async def _cost(self, request: Request) -> dict[str, Any]:
        await self._current(self._pools)
        try:
            cost = await self._runs.cost(**request.path_params)
        except FairleadError as error:
            return {"trouble": str(error), "cost": None}
        return {"trouble": "", "prices": self._pools.prices(), **cost}

    async def _log(self, request: Request) -> dict[str, Any]:
        try:
            return {"trouble": "", **await self._runs.log(**request.path_params)}
        except FairleadError as error:
            parts = ("lines", "problems", "environment", "earlier", "gone")
            return {"trouble": str(error), **{part: [] for part in parts}}

    async def _overview(self, _request: Request) -> dict[str, Any]:
        await self._current(self._pools)
        await self._current(self._runs)
        overview, placement = await asyncio.gather(
            self._pools.overview(self._runs.without_room()), self._read_placement()
        )
        return {"trouble": self._pools.trouble, "placement": placement, **overview}

    async def _read_placement(self) -> tuple[str, str]:
        if time.monotonic() - self._placement_read > _PLACEMENT_SECONDS:
            self._placement = await placement_in_force(self._pools.client)
            self._placement_read = time.monotonic()
        return self._placement


async def _schema(_request: Request) -> Response:
    """Return the JSON Schema of policy documents, for completion."""
    return JSONResponse(json_schema.schema(json_schema.ALL))


def _page_number(given: Mapping[str, str]) -> int:
    page = given.get("page", "")
    return int(page) if page.isdecimal() and len(page) < 9 else 1


async def _body(request: Request, most: int = MOST_BYTES) -> bytearray:
    """Return the whole body. Raises ValueError if it is too large, and TimeoutError."""
    body = bytearray()
    async with asyncio.timeout(SECONDS):
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise ValueError(_TOO_LONG)
    return body


def _refused(status: HTTPStatus, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status)
