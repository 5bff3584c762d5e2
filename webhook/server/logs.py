"""Logs as JSON, one object a line, on stderr."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS: Final = ("debug", "info", "warning", "error")

# What a record has of itself; whatever else it has was given as `extra`.
_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {
    "asctime",
    "color_message",  # uvicorn's second copy of a message, with escapes for terminals
    "message",
    "taskName",
}


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send the whole process's log to the stream (stderr if None), as JSON lines.

    `level` is one of LEVELS and holds for Fairlead's own loggers. Libraries never go below info:
    the Kubernetes client logs whole bodies at debug. Logs that an earlier call set up are closed.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(number, logging.INFO), handlers=[handler], force=True)
    logging.getLogger("webhook").setLevel(number)
    logging.captureWarnings(capture=True)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, in ASCII.

    Its keys: `time` (RFC 3339, UTC), `level`, `logger`, `message`, what was given as `extra`,
    and for an exception `exception` with the traceback. A value that JSON does not know is
    written as its str().
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        line: dict[str, object] = {
            "time": _timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(_extra(record.__dict__, line))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return json.dumps(line, default=str, allow_nan=False)
        except (ValueError, TypeError):
            # Infinite, circular, or with keys that are no text: the line must come all the same.
            return json.dumps({key: str(value) for key, value in line.items()})


def _extra(fields: Mapping[str, object], line: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in fields.items() if key not in _OWN and key not in line}


def _timestamp(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
