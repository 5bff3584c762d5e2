"""What the controller's metrics read of its parts, at each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.controller.controller import Controller
    from webhook.controller.metrics import ControllerMetrics
    from webhook.kube.token_bucket import TokenBucket
    from webhook.kube.writer import Writer


def watch_parts(
    metrics: ControllerMetrics, controller: Controller, writer: Writer, bucket: TokenBucket
) -> None:
    """Have the metrics tell what the parts know of themselves."""
    metrics.watch(
        controller.known,
        controller.informers,
        (
            ("fairlead_queue_depth", "Runs that wait for a worker.", controller.queue_depth),
            (
                "fairlead_queue_oldest_seconds",
                "How long the first of them has waited.",
                controller.queue_age,
            ),
            (
                "fairlead_api_throttled_total",
                "Answers of 429 from the API server.",
                lambda: writer.throttled,
            ),
            (
                "fairlead_api_rate",
                "Writes a second that the API server is asked, at most, now.",
                lambda: bucket.rate,
            ),
            (
                "fairlead_events_dropped_total",
                "Announcements that became no Event.",
                lambda: controller.announcer.dropped,
            ),
        ),
    )
