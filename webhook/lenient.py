"""The lenient base model of what Fairlead stores and reads back: the other half of `strict`.

A newer or an older version may have written it, and so may any other client. Unknown fields stay
as they are, a closed list of words is open here, and what cannot be read is set aside by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Self, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from webhook.strict import own_error, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

M = TypeVar("M", bound="Reported")
B = TypeVar("B", bound=BaseModel)
Path = tuple[str | int, ...]

# Passes over a document. Each removes what cannot be read; then a field that this leaves without
# its required ones, and so on upwards. No status is nested deeper.
_MOST_PASSES: Final = 8


class Reported(BaseModel):
    """The base of every status. Camel case outside; unknown fields are kept and written again."""

    model_config = ConfigDict(
        # A model that is not used is not built: `fairlead check` needs a part of them.
        defer_build=True,
        frozen=True,
        extra="allow",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    @classmethod
    def read(cls, document: object) -> Self:
        """Return the model of a stored document, without what cannot be read. Never raises."""
        return read(cls, document).value

    def unknown_fields(self) -> str:
        """Return the fields that this version does not know as JSON text; empty without any."""
        model_fields = type(self).model_fields
        kept = {
            key: value for key, value in (self.model_extra or {}).items() if key not in model_fields
        }
        return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode() if kept else ""


@dataclass(frozen=True, slots=True)
class Words:
    """Marks a field of texts with the words that this version knows; others may be stored."""

    words: tuple[str, ...]


class Finding(NamedTuple):
    """Something in a stored document that this version does not understand. path: of the value."""

    path: Path
    text: str


class Reading(NamedTuple, Generic[M]):
    """What was read. unread: values that were left out; unknown: words that are not known."""

    value: M
    unread: tuple[Finding, ...] = ()
    unknown: tuple[Finding, ...] = ()


def readable(check: Callable[[Any], object]) -> AfterValidator:
    """Return a check of a stored value by a function that raises ValueError, with its message.

    It is no part of the schema, which stored values of other versions would not meet.
    """

    def checked(value: Any) -> Any:
        try:
            check(value)
        except ValueError as error:
            raise own_error(str(error)) from None
        return value

    return AfterValidator(checked)


def read(model: type[M], document: object) -> Reading[M]:
    """Read a stored document: a value that cannot be read is as if it were not there.

    All fields of the model have defaults. Never raises. Time and memory are linear in the document.
    """
    given = {} if document is None else document
    value, unread = salvage(model, given)
    if value is None:
        return Reading(model(), unread)
    return Reading(value, unread, tuple(_unknown_words(value, ())))


def salvage(model: type[B], document: Any) -> tuple[B | None, tuple[Finding, ...]]:
    """Return the model of what is valid in a JSON document, if that is enough, and what is not."""
    findings: list[Finding] = []
    rest = document
    for number in range(_MOST_PASSES):
        try:
            return model.model_validate(rest, by_alias=True, by_name=False), tuple(findings)
        except ValidationError as error:
            lines = error.errors(include_url=False, include_context=False, include_input=False)
        places = {place_of(rest, line["loc"]): line for line in lines}
        # What is missing after the first pass was removed by it, and is reported already.
        findings += [
            Finding(path, str(line["msg"]))
            for path, line in places.items()
            if number == 0 or line["type"] != "missing"
        ]
        if () in places:
            break
        rest = without(rest, places)
    return None, tuple(findings)


def without(document: Any, paths: Iterable[Path]) -> Any:
    """Return a copy of a JSON document without the values at these paths."""
    below: dict[str | int, list[Path]] = {}
    for first, *rest in filter(None, paths):
        below.setdefault(first, []).append(tuple(rest))
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    kept = {
        key: without(value, below[key]) if key in below else value
        for key, value in pairs
        if () not in below.get(key, ())
    }
    return kept if isinstance(document, dict) else [*kept.values()]


def place_of(document: Any, location: Sequence[str | int]) -> Path:
    """Return the path of the value that an error of pydantic in a JSON document is about.

    A location ends in the name of a missing field, or goes on with words about a key or a type.
    """
    path: list[str | int] = []
    for step in location:
        keys: Any = document if isinstance(document, dict) else ()
        keys = range(len(document)) if isinstance(document, list) else keys
        if step not in keys:
            break
        document = document[step]
        path.append(step)
    return tuple(path)


def _unknown_words(value: object, at: Path) -> Iterator[Finding]:
    """Yield the texts in a model that are none of their field's known words."""
    if isinstance(value, Reported):
        for name, outer, known_words in _fields(type(value)):
            part = getattr(value, name)
            if known_words and part not in known_words:
                text = f"{quoted(part)} is not known; this version knows {', '.join(known_words)}"
                yield Finding((*at, outer), text)
            elif not known_words:
                yield from _unknown_words(part, (*at, outer))
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _unknown_words(part, (*at, key))
    elif isinstance(value, tuple):
        for number, part in enumerate(value):
            yield from _unknown_words(part, (*at, number))


@cache
def _fields(model: type[Reported]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return name, outer name and known words of each field that may have words, or models."""
    rows = []
    for name, field in model.model_fields.items():
        words = [marker.words for marker in field.metadata if isinstance(marker, Words)]
        if words or field.annotation not in (str, int, bool):
            rows.append((name, field.serialization_alias or name, words[0] if words else ()))
    return tuple(rows)
