"""The plain port's app: liveness, readiness with reasons, metrics."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from webhook.server.readiness import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from webhook.server.exposition import Exposition
    from webhook.server.readiness import Condition, Conditions

# Scrapes that are answered at one time; the next is told to come again. Each is some ten thousand
# bytes, and probes are answered by the same loop.
MOST_SCRAPES: Final = 4


def health_app(conditions: Conditions, metrics: Exposition) -> Starlette:
    """Make the app with `/livez`, `/readyz` and `/metrics`.

    `/livez` answers 200 as long as the event loop turns. `/readyz` answers 200 if every
    condition is ready, else 503, either way with each of them and its reason:

        {"ready": false, "conditions": {"policies": {"ready": false, "reason": "not loaded yet"}}}
    """

    scrapes = 0

    async def livez(_request: Request) -> Response:
        return JSONResponse({"live": True})

    async def readyz(_request: Request) -> Response:
        asked = evaluate(conditions)
        ready = _all_ready(asked)
        return JSONResponse(
            {
                "ready": ready,
                "conditions": {name: asdict(condition) for name, condition in asked.items()},
            },
            status_code=200 if ready else 503,
        )

    async def exposition(request: Request) -> Response:
        nonlocal scrapes
        if scrapes >= MOST_SCRAPES:
            return Response("too many scrapes at one time\n", 503, {"retry-after": "1"})
        scrapes += 1
        try:
            return await rendered(request)
        finally:
            scrapes -= 1

    async def rendered(request: Request) -> Response:
        # Here, for conditions are asked on the event loop, and rendering is on another thread.
        metrics.tell_ready(ready=_all_ready(evaluate(conditions)))
        body, media_type = await metrics.render(request.headers.get("accept", ""))
        # Not as media_type, to which Starlette would add a second charset.
        return Response(body, headers={"content-type": media_type})

    return Starlette(
        routes=[
            Route("/livez", livez),
            Route("/readyz", readyz),
            Route("/metrics", exposition),
        ]
    )


def _all_ready(asked: Mapping[str, Condition]) -> bool:
    return all(condition.ready for condition in asked.values())
