"""The strict base model of every document."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import (
    CoreSchema,
    ErrorDetails,
    InitErrorDetails,
    PydanticCustomError,
    core_schema,
)

from webhook.shortening import cut

T = TypeVar("T")

# The `type` of every error whose message is Fairlead's own, shown unchanged.
OWN_ERROR = "fairlead"
# The `type` of an unknown field: such an error is about the key, not about the value.
UNKNOWN_FIELD = "fairlead_unknown_field"
# The `type` of a word that is none of a closed list, where no Literal says so.
UNKNOWN_WORD = "fairlead_unknown_word"
# What stands for a value of a wrong type where rules between fields are judged.
WRONG: Final = object()
# The types of errors about what another version may know: fields, and words of closed lists.
NOT_KNOWN = (UNKNOWN_FIELD, UNKNOWN_WORD, "literal_error")


class Problem(NamedTuple):
    """Something wrong between fields: `at` is the path below the model that reports it."""

    at: tuple[str | int, ...]
    message: str

    @property
    def kind(self) -> str:
        """The `type` of the error."""
        return OWN_ERROR


class UnknownWord(Problem):
    """A word that is none of a closed list."""

    @property
    def kind(self) -> str:
        """The `type` of the error."""
        return UNKNOWN_WORD


def own_error(message: str, kind: str = OWN_ERROR) -> PydanticCustomError:
    """Return an error whose message is shown unchanged. Braces in it are not a template."""
    # Without a context pydantic leaves the message alone.
    return PydanticCustomError(kind, message)


def check(holds: Callable[[Any], object], message: str | Callable[[Any], str]) -> AfterValidator:
    """Return a check of a field's valid value; its error has this message."""

    def checked(value: Any) -> Any:
        if not holds(value):
            raise own_error(message if isinstance(message, str) else message(value))
        return value

    return AfterValidator(checked)


def under(field: str) -> str:
    """Return the message about a list in place of a mapping that has only this field."""
    return f"want a mapping, not a list; write the list as {field}"


def quoted(value: object, limit: int = 60) -> str:
    """`value` in quotes, as far as a line of a terminal can hold it."""
    text = value if isinstance(value, str) else repr(value)
    return repr(cut(text, limit))


def distinct(items: list[T], keys: Sequence[Hashable], at: tuple[str, ...], what: str) -> list[T]:
    """Return the items, if no two have the same key. Raises ValidationError at each that repeats
    one.
    """
    first: dict[Hashable, int] = {}
    errors = [
        InitErrorDetails(
            type=own_error(f"{what} is already used by [{first[key]}]; keep one of the two"),
            loc=(index, *at),
            input=key,
        )
        for index, key in enumerate(keys)
        if first.setdefault(key, index) < index
    ]
    if errors:
        raise ValidationError.from_exception_data(what, errors)
    return items


def guess(word: str, words: tuple[str, ...]) -> str:
    """`; did you mean 'x'?` if one of `words` is near to `word`, else nothing."""
    # A long word cannot be near to a field's name, and comparing it takes quadratic time.
    near = get_close_matches(word, words, n=1, cutoff=0.6) if len(word) <= 64 else []
    if not near:
        folded = {name.lower().replace("_", ""): name for name in words}
        near = [name for name in [folded.get(word.lower().replace("_", ""))] if name]
    return f"; did you mean {str(near[0])!r}?" if near else ""


def enum_field(words: type[StrEnum]) -> GetPydanticSchema:
    """Return a field that documents write as one of the enumeration's words; the model has the
    member.
    """
    written = core_schema.no_info_after_validator_function(
        words,
        core_schema.literal_schema([word.value for word in words]),
        serialization=core_schema.to_string_ser_schema(when_used="always"),
    )
    return GetPydanticSchema(lambda _source, _handler: written)


def optional(description: str, **more: Any) -> Any:
    """Return a field of a document that may be left out, and is None then."""
    return Field(default=None, description=description, **more)


class Strict(BaseModel):
    """A frozen model with camelCase outside and snake_case inside; nothing unknown, no coercion.

    Every error is reported at once: what is wrong between fields is found in the raw values too
    if a field beside them is wrong. Nothing in a model may be changed in place.
    """

    model_config = ConfigDict(
        # A model that is not used is not built: `fairlead check` needs a part of them.
        defer_build=True,
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    # Fields that exist elsewhere, but not in this class, by their outer names, with the reason.
    refused: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:  # noqa: ARG003 for heirs
        """Yield what is wrong between the fields `given`, raw and by their outer names.

        A value that is wrong by itself is there as `WRONG`, which has no type that a rule knows and
        equals nothing: a rule compares with the values that it knows, and ignores others.
        """
        yield from ()

    @classmethod
    def outer_names(cls) -> tuple[str, ...]:
        """Return the fields that may be written, by their outer names, in the order of the
        class."""
        return tuple(name for name in cls._outer().values() if name not in cls.refused)

    @classmethod
    def _outer(cls) -> dict[str, str]:
        fields = cls.model_fields.items()
        return {name: field.serialization_alias or name for name, field in fields}

    @model_validator(mode="wrap")
    @classmethod
    def _report_all_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        outer = cls._outer()
        if isinstance(data, list) and len(outer) == 1:
            (field,) = outer.values()
            raise own_error(under(str(field)))
        if not isinstance(data, dict):
            return handler(data)
        given = {str(outer.get(key, key)): value for key, value in data.items()}
        errors = [
            InitErrorDetails(type=own_error(message, UNKNOWN_FIELD), loc=(key,), input=given[key])
            for key, message in cls.refused.items()
            if given.get(key) is not None
        ]
        model, wrong = None, list[InitErrorDetails]()
        try:
            accepted = {key: data[key] for key in data if outer.get(key, key) not in cls.refused}
            model = handler(accepted)
        except ValidationError as error:
            wrong = [
                cls._describe_unknown_field(_bare(line)) for line in error.errors(include_url=False)
            ]
        readable = given
        for line in wrong:
            if isinstance(line["type"], str):  # by pydantic: the value's type is not the field's
                readable = _with_wrong_value(readable, line.get("loc", ()))
        errors += [
            InitErrorDetails(
                type=own_error(problem.message, problem.kind), loc=problem.at, input=given
            )
            for problem in cls.cross_check(readable)
        ]
        errors += wrong
        if errors or model is None:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return model

    @classmethod
    def _describe_unknown_field(cls, line: InitErrorDetails) -> InitErrorDetails:
        """Report an unknown field of this model, with the most similar known one."""
        location = line.get("loc", ())
        if line["type"] != "extra_forbidden" or len(location) != 1:
            return line
        name = location[0]
        field_names = cls.outer_names()
        hint = guess(name, field_names) if isinstance(name, str) else ""
        message = f"there is no such field{hint or '; the fields are ' + ', '.join(field_names)}"
        return InitErrorDetails(
            type=own_error(message, UNKNOWN_FIELD), loc=location, input=line["input"]
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name in cls.refused:
            properties.pop(name, None)
        return schema


def _with_wrong_value(value: Any, path: tuple[int | str, ...]) -> Any:
    """Return the value with `WRONG` at the path, if there is something."""
    if not path:
        return WRONG
    step = path[0]
    if isinstance(value, dict) and step in value:
        return {**value, step: _with_wrong_value(value[step], path[1:])}
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return [*value[:step], _with_wrong_value(value[step], path[1:]), *value[step + 1 :]]
    return value


def _bare(line: ErrorDetails) -> InitErrorDetails:
    """Return one of ValidationError.errors() in the form that an exception can be made of again."""
    kind: str | PydanticCustomError = line["type"]
    if line["type"].startswith(OWN_ERROR):
        kind = own_error(line["msg"], line["type"])
    bare = InitErrorDetails(type=kind, loc=line["loc"], input=line["input"])
    if "ctx" in line:
        bare["ctx"] = line["ctx"]
    return bare


def build_models(*bases: type[BaseModel]) -> None:
    """Build every imported model of these bases that is not built yet.

    A process that answers requests does it at its start: otherwise the first request of each kind
    waits for it, and the event loop with it.
    """
    for base in bases:
        base.model_rebuild()
        build_models(*base.__subclasses__())
