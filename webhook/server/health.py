"""The plain port: /livez, /readyz and /metrics."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from webhook import metric_names
from webhook.server.readiness import evaluate
from webhook.turns import SharedCalls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from webhook.server.readiness import Condition, Conditions

# Concurrent scrapes; a further one is refused. Each has about ten thousand bytes, and the same
# event loop answers probes.
MOST_SCRAPES: Final = 4
# Seconds between the starts of two renderings: each takes milliseconds, and every client of the
# port may request one.
RENDER_PAUSE: Final = 0.1


def health_app(conditions: Conditions, metrics: Exposition) -> Starlette:
    """Create the app with `/livez`, `/readyz` and `/metrics`.

    `/livez` answers 200 while the event loop runs. `/readyz` answers 200 if every condition is
    ready, else 503, in both cases with each condition and its reason:

    {"ready": false, "conditions": {"policies": {"ready": false, "reason": "not loaded yet"}}}
    """

    scrapes = 0

    async def livez(_request: Request) -> Response:
        return JSONResponse({"live": True})

    async def readyz(_request: Request) -> Response:
        evaluated = evaluate(conditions)
        ready = _all_ready(evaluated)
        return JSONResponse(
            {
                "ready": ready,
                "conditions": {name: asdict(condition) for name, condition in evaluated.items()},
            },
            status_code=200 if ready else 503,
        )

    async def exposition(request: Request) -> Response:
        nonlocal scrapes
        if scrapes >= MOST_SCRAPES:
            return Response("too many scrapes at one time\n", 503, {"retry-after": "1"})
        scrapes += 1
        try:
            # Evaluated here, on the event loop; rendering runs on another thread.
            metrics.set_ready(ready=_all_ready(evaluate(conditions)))
            body, media_type = await metrics.render(request.headers.get("accept", ""))
        finally:
            scrapes -= 1
        # Not as media_type, to which Starlette would add a second charset.
        return Response(body, headers={"content-type": media_type})

    return Starlette(
        routes=[
            Route("/livez", livez),
            Route("/readyz", readyz),
            Route("/metrics", exposition),
        ]
    )


def _all_ready(evaluated: Mapping[str, Condition]) -> bool:
    return all(condition.ready for condition in evaluated.values())


class Exposition:
    """A separate registry with the process's own metrics."""

    def __init__(self) -> None:
        # The `_created` series would double the size, and are rarely used.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._ready = Gauge(
            metric_names.READY, "1 if /readyz answers 200, else 0.", registry=self.registry
        )
        self._renderings = SharedCalls[bytes](RENDER_PAUSE)

    def set_ready(self, *, ready: bool) -> None:
        self._ready.set(ready)

    async def render(self, accept: str) -> tuple[bytes, str]:
        """Return the exposition for an Accept header, and its content type.

        All callers before the start of a rendering share it.
        """
        encode, content_type = choose_encoder(accept)
        body = await self._renderings.share(
            content_type, lambda: asyncio.to_thread(encode, self.registry)
        )
        return body, content_type
