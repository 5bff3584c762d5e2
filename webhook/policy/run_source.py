"""The document RunSource: what a file of `webhook/sources` may contain, read strictly."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from webhook.placement.schema.syntax import AnnotationKey, LabelKey, LabelValue
from webhook.policy import reader
from webhook.policy.forms import Forms
from webhook.policy.match_model import Framework, Kind, Role
from webhook.policy.metadata_model import Metadata
from webhook.sources.kinds import parse_field, parse_text
from webhook.strict import Problem, Strict, own_error


def _path(text: str) -> str:
    try:
        parse_field(text)
    except ValueError as error:
        raise own_error(str(error)) from None
    return text


def _text(text: str) -> str:
    try:
        parse_text(text)
    except ValueError as error:
        raise own_error(str(error)) from None
    return text


FieldPath = Annotated[str, AfterValidator(_path)]
Text = Annotated[str, AfterValidator(_text)]
Word = Annotated[str, Field(min_length=1)]


def _one_of(given: Mapping[str, Any], *names: str) -> Iterator[Problem]:
    found = [name for name in names if name in given]
    if len(found) != 1:
        has = " and ".join(found) or "none"
        yield Problem((), f"want exactly one of {', '.join(names)}; there is {has}")


class Key(Strict):
    """A label or an annotation of the pod."""

    label: LabelKey | None = None
    annotation: AnnotationKey | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """One of the two."""
        yield from _one_of(given, "label", "annotation")


class Mark(Strict):
    """A label of the pod, or of its namespace, that makes the pod belong to a run."""

    label: LabelKey | None = None
    namespace_label: LabelKey | None = None
    value: LabelValue | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """One of the two labels."""
        yield from _one_of(given, "label", "namespaceLabel")


class Clause(Strict):
    """One way to tell a fact; without a label or an annotation it always tells it."""

    label: LabelKey | None = None
    annotation: AnnotationKey | None = None
    ours: bool | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """A key, unless the fact is always told; and the words of its values."""
        if "always" not in given or "label" in given or "annotation" in given:
            yield from _one_of(given, "label", "annotation")
        if not {"always", "words", "ours"} & set(given):
            yield Problem((), "want one of always, words, ours; there is none")


class KindClause(Clause):
    """One way to tell the kind."""

    words: dict[Kind, list[Word]] | None = None
    always: Kind | None = None


class FrameworkClause(Clause):
    """One way to tell the framework."""

    words: dict[Framework, list[Word]] | None = None
    always: Framework | None = None


class RoleClause(Clause):
    """One way to tell the role."""

    words: dict[Role, list[Word]] | None = None


class PodCondition(Strict):
    """What must hold of a pod."""

    label: LabelKey | None = None
    among: list[LabelValue] | None = Field(
        default=None, validation_alias="in", serialization_alias="in"
    )
    not_in: list[LabelValue] | None = None
    host: list[Word] | None = None
    or_absent: bool | None = None
    role: list[Role] | None = None
    framework: list[Framework | Literal["none"]] | None = None
    completion_index: list[int] | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """One fact."""
        yield from _one_of(given, "label", "role", "framework", "completionIndex")


class IndexKey(Key):
    """A key that tells the replica's index, under conditions."""

    when: list[PodCondition] | None = None


class Leader(Strict):
    """Pods of which all of `when` holds lead their run if all of `onlyIf` holds."""

    when: list[PodCondition] = Field(min_length=1)
    only_if: list[PodCondition] | None = None


class Identity(Strict):
    """How the system's pods are recognised."""

    precedence: int = Field(ge=0, le=1000)
    marks: list[Mark] = Field(min_length=1)
    run: list[Key] | None = None
    kind: list[KindClause] | None = None
    framework: list[FrameworkClause] | None = None
    role: list[RoleClause] | None = None
    index: list[IndexKey] | None = None
    coordinator: list[Leader] | None = None


class Count(Strict):
    """How many pods there are."""

    from_: list[FieldPath] | None = Field(
        default=None, validation_alias="from", serialization_alias="from"
    )
    default: int | None = Field(default=None, ge=0)
    times: list[FieldPath] | None = None
    per_node: bool | None = None


class ReplicaCondition(Strict):
    """What must hold of a replica."""

    field: FieldPath | None = None
    among: list[str] | None = Field(default=None, validation_alias="in", serialization_alias="in")
    or_absent: bool | None = None
    part: list[Word] | None = None
    without: list[Word] | None = None
    index: list[int] | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """One fact."""
        yield from _one_of(given, "field", "part", "without", "index")


class Addition(Strict):
    """What the controller adds to the metadata of replicas."""

    when: list[ReplicaCondition] | None = None
    labels: dict[LabelKey, Text] | None = None
    annotations: dict[AnnotationKey, Text] | None = None
    labels_from: FieldPath | None = None


class Like(Strict):
    """Another kind, of which the object makes one."""

    group: str
    kind: Word
    spec: FieldPath
    name: Text


class Pods(Strict):
    """Pods that are alike, but for their part and their index."""

    template: FieldPath | None = None
    like: Like | None = None
    each: FieldPath | None = None
    part: Text | None = None
    count: Count | None = None
    first: FieldPath | None = None
    owned: bool | None = None
    drop_metadata: bool | None = None
    adds: list[Addition] | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """A template, or a kind that has them."""
        yield from _one_of(given, "template", "like")


class PodKind(Strict):
    """A kind that makes pods."""

    group: str
    kind: Word
    versions: list[Word] | None = None
    resource: Word | None = None
    through: list[Word] | None = None
    claims: list[FieldPath] | None = None
    reusable: bool | None = None
    code: Word | None = None
    pods: list[Pods] | None = None


class Spec(Strict):
    """A system: how its pods are recognised, and its kinds that make pods."""

    system: Word
    origin: str | None = None
    note: str | None = None
    identity: Identity | None = None
    kinds: list[PodKind] | None = None


class RunSource(Strict):
    """One system that makes pods."""

    api_version: Literal["fairlead.dev/v1alpha1"]
    kind: Literal["RunSource"]
    metadata: Metadata
    spec: Spec


_SOURCES: Final = Forms({"RunSource": RunSource}, "files of systems")


def parse(files: Mapping[str, bytes]) -> reader.Documents[RunSource]:
    """Read files of systems, by name; never raises, whatever is in them."""
    return reader.read(files, _SOURCES)
