"""Read text that others wrote into a stored object: within bounds, and with one error.

Whoever may patch an object writes its annotations, and a newer version of Fairlead may have written
them before a rollback. So a reader expects nothing of their content, and ignores what it does not
know. No function here raises anything but UnreadableText, whatever it gets.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import UnreadableText
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

# Of all annotations of an object (TotalAnnotationSizeLimitB, apimachinery, pkg/api/validation).
MOST_CHARACTERS: Final = 256 * 1024
# Objects and lists within each other. A pod has about 12. Python's own functions recurse, and fail
# below 1,000.
MOST_DEPTH: Final = 64
# Years of a time. Sums with any span that a policy may set stay within datetime's range.
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2999
_SHOWN: Final = 40


def annotation(metadata: object, key: str) -> str:
    """Return an annotation's text; empty if the metadata has none, or something else there."""
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(key) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else ""


def parse_object(text: str, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """Parse a JSON object of at most so many characters, and MOST_DEPTH levels.

    Of equal keys the last counts. Numbers are finite; a whole one over 64 bits is a float.
    Raises UnreadableText.
    """
    value = parse_json(text, most)
    if not isinstance(value, dict):
        raise UnreadableText(f"want a JSON object, not {_shown(text)}")
    return value


def parse_array(text: str, most: int = MOST_CHARACTERS) -> list[Any]:
    """Parse a JSON array, within the bounds of an object. Raises UnreadableText."""
    value = parse_json(text, most)
    if not isinstance(value, list):
        raise UnreadableText(f"want a JSON array, not {_shown(text)}")
    return value


def parse_json(text: str, most: int = MOST_CHARACTERS) -> Any:
    """Parse any JSON value, within the bounds of an object. Raises UnreadableText."""
    # Not at the top: every command imports this module to start, and few parse anything.
    import orjson

    if len(text) > most:
        raise UnreadableText(f"want at most {most:,} characters, not {len(text):,}")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UnreadableText(f"want a JSON object: {cut(str(error), 2 * _SHOWN)}") from None
    # Most texts have fewer brackets than that, so the walk is left out.
    deep = text.count("{") + text.count("[") > MOST_DEPTH
    if deep and _has_members(value) and _is_deeper(value, MOST_DEPTH):
        raise UnreadableText(f"want a JSON object of at most {MOST_DEPTH} levels")
    return value


def parse_moment(value: object) -> datetime:
    """Parse a time with a time zone, of FIRST_YEAR to LAST_YEAR. Raises UnreadableText."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UnreadableText(f"want an RFC 3339 time with a time zone, not {_shown(value)}")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        years = f"{FIRST_YEAR} to {LAST_YEAR}"
        raise UnreadableText(f"want a time of the years {years}, not {_shown(value)}")
    return moment


def parse_count(value: object, least: int, most: int) -> int:
    """Return a whole JSON number within the bounds. Raises UnreadableText."""
    # A bool is an int to Python.
    if type(value) is not int or not least <= value <= most:
        raise UnreadableText(f"want a whole number from {least} to {most}, not {_shown(value)}")
    return value


def parse_list(value: object, most: int) -> list[Any]:
    """Return a JSON array of at most so many entries. Raises UnreadableText."""
    if not isinstance(value, list):
        raise UnreadableText(f"want a list, not {_shown(value)}")
    if len(value) > most:
        raise UnreadableText(f"want at most {most} entries, not {len(value):,}")
    return value


def whole_number(text: object) -> int | None:
    """Return the number of a text of one to nine digits; None if it is none."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 9:
        return None
    return int(text)


def split_names(text: str, most: int) -> list[str]:
    """Return the first names of a list joined by commas, each once, valid or not."""
    # The rest is not split: it may be a hundred thousand names.
    parts = text.split(",", 2 * most)[: 2 * most]
    return list(dict.fromkeys(filter(None, map(str.strip, parts))))[:most]


def _is_deeper(value: dict[str, Any] | list[Any], most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [inner for parent in level for inner in _members(parent) if _has_members(inner)]
        if not level:
            return False
    return True


def _members(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _has_members(value: object) -> bool:
    return isinstance(value, dict | list)


def _shown(value: object) -> str:
    """Return the beginning of a text or a plain value; else its type, as others may be deep."""
    if isinstance(value, str | int | float | None):
        return cut(ascii(value) if not isinstance(value, int) else _number(value), _SHOWN)
    return "an object" if isinstance(value, dict) else "a list"


def _number(value: int) -> str:
    # Python refuses to write a number of over 4,300 digits.
    return str(value) if abs(value) < 2**64 else "a number over 64 bits"
