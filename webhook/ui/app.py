"""The pages, as a Starlette app."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from webhook.policy import json_schema
from webhook.shortening import harmless
from webhook.ui import playground
from webhook.ui.playground import MOST_BYTES, Texts
from webhook.ui.worker import TooMuch, Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request

    from webhook.ui.playground import Answer

# Seconds for one answer of the playground.
SECONDS: Final = 10.0
_STATIC: Final = Path(__file__).parent / "static"


@dataclass
class Pages:
    """What the pages show. texts: what the editors have at first."""

    texts: Texts
    worker: Worker[Texts, Answer] = field(
        default_factory=lambda: Worker(playground.answer, SECONDS)
    )

    def __post_init__(self) -> None:
        self._templates = Environment(
            loader=PackageLoader("webhook.ui"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # Text of manifests and of a cluster may have control characters.
        self._templates.filters["plain"] = harmless

    def app(self) -> Starlette:
        """Return the app, without a guard."""
        return Starlette(
            routes=[
                Route("/", lambda _: RedirectResponse("/playground")),
                Route("/playground", self.playground),
                Route("/playground/answer", self.answer, methods=["POST"]),
                Route("/schema.json", _schema),
                Mount("/static", StaticFiles(directory=_STATIC)),
            ],
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        self.worker.end()

    def _page(self, template: str, values: Mapping[str, Any]) -> str:
        return self._templates.get_template(template).render(values)

    async def playground(self, _request: Request) -> Response:
        """Return the page itself, with the texts of the start."""
        return HTMLResponse(self._page("playground.html", {"texts": self.texts._asdict()}))

    async def answer(self, request: Request) -> Response:
        """Return marks and HTML for the texts of a JSON body."""
        try:
            texts = Texts.read(await _body(request))
        except TimeoutError:
            return _refused(HTTPStatus.REQUEST_TIMEOUT, f"no whole request in {SECONDS:g} s")
        except ValueError as error:
            return _refused(HTTPStatus.BAD_REQUEST, str(error))
        try:
            found = await self.worker.ask(texts)
        except TooMuch:
            why = f"no answer within {SECONDS:g} s: give fewer policies or objects"
            return _refused(HTTPStatus.SERVICE_UNAVAILABLE, why)
        html = self._page("answer.html", found._asdict())
        marks = [each._asdict() for each in found.marks]
        return JSONResponse({"marks": marks, "html": html, "test": found.test})


async def _schema(_request: Request) -> Response:
    """Return the JSON Schema of policy documents, for completion."""
    return JSONResponse(json_schema.schema(json_schema.ALL))


async def _body(request: Request) -> bytearray:
    """Return the whole body. Raises ValueError if it is too large, and TimeoutError."""
    body = bytearray()
    async with asyncio.timeout(SECONDS):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                most = f"over {MOST_BYTES // 1024} KiB"
                raise ValueError(f"the texts have {most}: fairlead mutate and explain take more")
    return body


def _refused(status: HTTPStatus, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status)
