"""JSON logs on stderr."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

from webhook.times import to_microsecond

if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS: Final = ("debug", "info", "warning", "error")

# The attributes of every record; all others come from `extra`.
_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {
    "asctime",
    "color_message",  # uvicorn's second copy of a message, with escapes for terminals
    "message",
    "taskName",
}

# Characters of one value in a line, and of a line. Any client may cause logs of its own text, and
# the manifests give a pod 64 MiB for its log. A placement policy's reason has a few hundred.
LONGEST_TEXT: Final = 4096
LONGEST_LINE: Final = 32 * 1024
# Characters of lines in a burst, and per second. Every ten seconds a kubelet checks whether a log
# has 10 MiB, and it keeps five files. Normal operation logs a hundredth of this.
BURST: Final = 4 * 1024 * 1024
PER_SECOND: Final = 256 * 1024


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send the process's log to the stream (stderr if None), as JSON lines.

    `level` is one of LEVELS and applies to Fairlead's own loggers. Libraries log at info or above,
    because the Kubernetes client logs whole bodies at debug. Handlers of an earlier call are
    closed. Above debug the amount is limited, see PacedHandler.
    """
    out = stream or sys.stderr
    handler = logging.StreamHandler(out) if level == "debug" else PacedHandler(out)
    handler.setFormatter(JsonFormatter())
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(number, logging.INFO), handlers=[handler], force=True)
    logging.getLogger("webhook").setLevel(number)
    logging.captureWarnings(capture=True)


class PacedHandler(logging.StreamHandler[TextIO]):
    """Writes lines up to a limit: BURST at once, then PER_SECOND.

    Lines over the limit are dropped, and the next line gives their number.
    """

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._room = float(BURST)
        self._seen = clock()
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock()
        self._room = min(BURST, self._room + (now - self._seen) * PER_SECOND)
        self._seen = now
        if self._room <= 0:
            self._left_out += 1
            return
        if self._left_out:
            record.lines_left_out = self._left_out
            self._left_out = 0
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        self._room -= len(line)
        return line


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, in ASCII.

    Its keys: `time` (RFC 3339, UTC), `level`, `logger`, `message`, the keys of `extra`, and
    `exception` with the traceback. A value that JSON does not support is written as its str(). A
    value that is too long is shortened, with a note.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": to_microsecond(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = record.__dict__.items()
        line |= {key: value for key, value in extra if key not in _OWN and key not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        line = {key: _cut(value, LONGEST_TEXT) for key, value in line.items()}
        try:
            text = json.dumps(line, default=str, allow_nan=False)
        except (ValueError, TypeError):
            # Infinite, circular, or with keys of other types: the line must be written anyway.
            text = json.dumps({key: _cut(str(value), LONGEST_TEXT) for key, value in line.items()})
        if len(text) <= LONGEST_LINE:
            return text
        # An escaped character takes six. There are at most a dozen keys.
        most = LONGEST_LINE // 6 // (len(line) + 1)
        return json.dumps({key: _cut(str(value), most) for key, value in line.items()})


def _cut(value: object, most: int) -> object:
    """Return a text without its middle if it is too long; a traceback ends with the error."""
    if not isinstance(value, str) or len(value) <= most:
        return value
    half = most // 2
    return f"{value[:half]}… ({len(value)} characters) …{value[-half:]}"
