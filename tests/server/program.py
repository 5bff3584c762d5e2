"""A small serving program, wired as the real one: the tests start it and send it signals.

Usage: python -m tests.server.program GRACE_SECONDS. It prints one line of JSON with its ports
and the authority to trust, logs on stderr, and exits 0, or 1 if its drain was cut short.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial

from tests.server.serving import HOST, authority, echo, leaf
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.drain import ClosingConnections, Drain, drain_on_signals
from webhook.server.health import health_app
from webhook.server.limit import InFlightLimit
from webhook.server.listener import bind, serve
from webhook.server.logs import configure
from webhook.server.tls import ServerTls
from webhook.server.webhook_metrics import Metrics


async def main(grace: float) -> bool:
    """Serve the echo until drained; tell whether the drain was complete."""
    trust = authority()
    pair = leaf(trust)
    tls, metrics, drain = ServerTls(), Metrics(), Drain(grace)
    tls.swap(pair.certificate, pair.private_key)
    limiter = ConnectionLimiter(1000)
    shed = partial(metrics.requests.count, "overloaded", "503")
    limit = InFlightLimit(echo, 100, waiting=lambda: limiter.busy, on_refused=shed)
    metrics.in_flight.set_function(lambda: limit.in_flight)
    https, plain = bind(HOST, 0), bind(HOST, 0)
    with drain_on_signals(drain):
        hello = {
            "https": https.getsockname()[1],
            "plain": plain.getsockname()[1],
            "trust": trust.certificate.decode(),
        }
        sys.stdout.write(json.dumps(hello) + "\n")
        sys.stdout.flush()
        return await serve(
            ClosingConnections(limit, drain),
            health_app({"tls": tls.condition, "drain": drain.condition}, metrics),
            https=https,
            plain=plain,
            tls=tls,
            drain=drain,
            limiter=limiter,
        )


if __name__ == "__main__":
    configure("debug")
    sys.exit(0 if asyncio.run(main(float(sys.argv[1]))) else 1)
