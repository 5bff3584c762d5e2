"""The model of a RunSource: the files in `webhook/sources`, and documents of admins."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import AfterValidator, Field

from webhook.dns_names import MAX_SUBDOMAIN
from webhook.placement.schema.syntax import MAX_LISTED, AnnotationKey, LabelKey, LabelValue
from webhook.policy import reader
from webhook.policy.document_parser import Forms
from webhook.policy.match_model import Framework, Kind, Role
from webhook.policy.model import Metadata, PolicyObject
from webhook.sources.kind_model import parse_field, parse_text
from webhook.strict import Problem, Strict, optional, own_error


def _parsed(parse: Callable[[str], object]) -> AfterValidator:
    def checked(text: str) -> str:
        try:
            parse(text)
        except ValueError as error:
            raise own_error(str(error)) from None
        return text

    return AfterValidator(checked)


FieldPath = Annotated[str, _parsed(parse_field), Field(max_length=MAX_SUBDOMAIN)]
Text = Annotated[str, _parsed(parse_text), Field(max_length=MAX_SUBDOMAIN)]
Word = Annotated[str, Field(min_length=1, max_length=MAX_SUBDOMAIN)]
# Each mark is one more entry of the webhook configuration.
MAX_MARKS: Final = 16
MAX_PROSE: Final = 1000
_T = TypeVar("_T")
_K = TypeVar("_K")
Several = Annotated[list[_T], Field(max_length=MAX_LISTED)]
Named = Annotated[dict[_K, _T], Field(max_length=MAX_LISTED)]


def _one_of(given: Mapping[str, Any], *names: str) -> Iterator[Problem]:
    given_names = [name for name in names if name in given]
    if len(given_names) != 1:
        has = " and ".join(given_names) or "none"
        yield Problem((), f"want exactly one of {', '.join(names)}; there is {has}")


class _Either(Strict):
    """A model with exactly one of the fields in `either`, by their outer names."""

    either: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Require one of the fields."""
        yield from _one_of(given, *cls.either)


class Key(_Either):
    """A label or an annotation of the pod."""

    either = ("label", "annotation")
    label: LabelKey | None = optional("The key of a label.")
    annotation: AnnotationKey | None = optional("The key of an annotation.")


class Mark(_Either):
    """A label of the pod, or of its namespace, that makes the pod belong to a run."""

    either = ("label", "namespaceLabel")
    label: LabelKey | None = optional("The key of a label of the pod.")
    namespace_label: LabelKey | None = optional("The key of a label of the pod's namespace.")
    value: LabelValue | None = optional("The label's value; left out, any.")


class Clause(Strict):
    """One rule for a property; without a label or an annotation it always applies."""

    label: LabelKey | None = optional("The key of the label that is read.")
    annotation: AnnotationKey | None = optional("The key of the annotation that is read.")
    ours: bool | None = optional("True if the value may also be Fairlead's own name for it.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Require a key, unless the rule always applies; and the names of its values."""
        if "always" not in given or "label" in given or "annotation" in given:
            yield from _one_of(given, "label", "annotation")
        if not {"always", "words", "ours"} & set(given):
            yield Problem((), "want one of always, words, ours; there is none")


class KindClause(Clause):
    """One rule for the kind."""

    words: Named[Kind, Several[Word]] | None = optional("The system's names for each kind.")
    always: Kind | None = optional(
        "The kind if the pod has the key; without a key, the kind of every pod."
    )


class FrameworkClause(Clause):
    """One rule for the framework."""

    words: Named[Framework, Several[Word]] | None = optional(
        "The system's names for each framework."
    )
    always: Framework | None = optional(
        "The framework if the pod has the key; without a key, that of every pod."
    )


class RoleClause(Clause):
    """One rule for the role."""

    words: Named[Role, Several[Word]] | None = optional("The system's names for each role.")
    always: Role | None = optional("The role if the key is there.")


class PodCondition(_Either):
    """A condition on a pod."""

    either = ("label", "role", "framework", "completionIndex")
    label: LabelKey | None = optional("The key of a label, which `in`, `notIn` or `host` tests.")
    among: Several[LabelValue] | None = optional("The label has one of these values.", alias="in")
    not_in: Several[LabelValue] | None = optional("The label has none of these values.")
    host: Several[Word] | None = optional(
        "Labels whose values, joined by hyphens, the label has up to its first dot."
    )
    or_absent: bool | None = optional("True if the condition also holds without the label.")
    role: Several[Role] | None = optional("The role is one of these.")
    framework: Several[Framework | Literal["none"]] | None = optional(
        "The framework is one of these; `none`: the pod has none."
    )
    completion_index: Several[int] | None = optional(
        "The index in the pod's Indexed Job is one of these."
    )


class IndexKey(Key):
    """A key with the replica's index, and the conditions for reading it."""

    when: Several[PodCondition] | None = optional("The key is read if all of these hold.")


class ObjectRef(Strict):
    """The object of a run, by a label of its pods."""

    api_version: Word = Field(description="The object's API group and version.")
    kind: Word = Field(description="The object's kind.")
    label: LabelKey = Field(description="The key of the label that has the object's name.")


class Leader(Strict):
    """Pods that meet all of `when` are the coordinator if they meet all of `onlyIf`."""

    when: Several[PodCondition] = Field(
        min_length=1, description="The pods that this entry is about."
    )
    only_if: Several[PodCondition] | None = optional(
        "The conditions for a coordinator; without them, every such pod is one."
    )
    unless_led: ObjectRef | None = optional(
        "The object whose other pods decide: if one of them has a role that leads, "
        "this pod is no coordinator. The webhook reads the object for such pods."
    )


class Identity(Strict):
    """How the system's pods are recognized."""

    precedence: int = Field(
        ge=0,
        le=1000,
        description="The order of systems if several mark a pod; the highest comes first.",
    )
    marks: list[Mark] = Field(
        min_length=1,
        max_length=MAX_MARKS,
        description="The marks of the system's pods; one is enough.",
    )
    run: Several[Key] | None = optional(
        "Keys of the run's name; the first that the pod has is used."
    )
    kind: Several[KindClause] | None = optional(
        "Rules for the kind; the first with a value is used."
    )
    framework: Several[FrameworkClause] | None = optional(
        "Rules for the framework; the first with a value is used."
    )
    role: Several[RoleClause] | None = optional(
        "Rules for the role; the first with a value is used."
    )
    index: Several[IndexKey] | None = optional(
        "Keys of the replica's index; the first that the pod has is used."
    )
    replicas: Several[IndexKey] | None = optional(
        "Keys of the number of replicas of the pod's role, by which a policy splits "
        "them; the first that the pod has is used."
    )
    coordinator: Several[Leader] | None = optional(
        "Which pods are coordinators; the first entry about a pod is used."
    )
    object: ObjectRef | None = optional(
        "The object that the user wrote, if the owners of a pod do not lead to it. "
        "Events about such pods are on this object."
    )


class Count(Strict):
    """The number of pods."""

    from_: Several[FieldPath] | None = optional(
        "Fields with the number; the first that is set is used.", alias="from"
    )
    default: int | None = optional("The number if no field is set. Default: 1.", ge=0)
    least: Several[FieldPath] | None = optional(
        "Fields with the smallest number; the first that is set is used."
    )
    most: Several[FieldPath] | None = optional(
        "Fields with the largest number; the first that is set is used."
    )
    times: Several[FieldPath] | None = optional("Fields whose values multiply the number.")
    over: Several[FieldPath] | None = optional("Fields whose values divide the product.")
    less: int | None = optional(
        "The number to subtract from the product of `times`, such as 1 for a leader with its own "
        "template. If nothing remains, there are no pods.",
        ge=0,
    )
    per_node: bool | None = optional("True if there is one pod per node, instead of a number.")


class ReplicaCondition(_Either):
    """A condition on a replica."""

    either = ("field", "part", "without", "index")
    field: FieldPath | None = optional("A field, which `in` tests.")
    among: Several[str | bool] | None = optional(
        "The field has one of these values; without `in`, it is set.", alias="in"
    )
    or_absent: bool | None = optional("True if the condition also holds without the field.")
    part: Several[Word] | None = optional("The part is one of these.")
    without: Several[Word] | None = optional("The object has none of these parts.")
    index: Several[int] | None = optional("The replica's index is one of these.")


class Addition(Strict):
    """Metadata that the controller adds to replicas."""

    when: Several[ReplicaCondition] | None = optional("The replicas that get it. Default: all.")
    labels: Named[LabelKey, Text] | None = optional("Labels.")
    annotations: Named[AnnotationKey, Text] | None = optional("Annotations.")
    labels_from: FieldPath | None = optional("A field with more labels to add.")


class Like(Strict):
    """Another object that the object creates, and that creates the pods."""

    group: str | None = optional(
        "The other kind's API group; empty for the core's.", max_length=MAX_SUBDOMAIN
    )
    kind: Word | None = optional("The other kind.")
    spec: FieldPath | None = optional("The field that holds its spec.")
    metadata: FieldPath | None = optional("The field that holds its metadata, beside `spec`.")
    object: FieldPath | None = optional(
        "The field that holds the whole object, of any kind; instead of `group`, `kind` and `spec`."
    )
    name: Text = Field(description="The name of the object of that kind.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Require a spec of a kind, or a whole object."""
        yield from _one_of(given, "spec", "object")
        for name in ("group", "kind"):
            if ("spec" in given) != (name in given):
                yield Problem((), f"want {name} if and only if there is spec")


class Build(Strict):
    """A pod template that the controller makes of several fields."""

    template: FieldPath | None = optional("The field with the pod template that it starts from.")
    spec: FieldPath | None = optional("The field with the pod's spec that it starts from.")
    labels: Several[FieldPath] | None = optional(
        "Fields with labels; later ones replace earlier ones."
    )
    annotations: Several[FieldPath] | None = optional(
        "Fields with annotations; later ones replace earlier ones."
    )
    default: Named[Word, Several[FieldPath]] | None = optional(
        "Fields of the pod's spec that are empty at the start: where their values "
        "are. The first that is not empty is used."
    )
    set_: Named[Word, Several[FieldPath]] | None = optional(
        "Fields of the pod's spec: where their values are, which replace those of "
        "the start. The first that is not empty is used.",
        alias="set",
    )
    add: Named[Word, Several[FieldPath]] | None = optional(
        "Fields of the pod's spec: mappings and lists that are added to those before."
    )
    containers: Several[FieldPath] | None = optional(
        "Fields with a container or a list of containers."
    )
    container: Word | None = optional("The name of containers without a name. Default: main.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """At most one start."""
        if "template" in given and "spec" in given:
            yield Problem((), "want at most one of template, spec; there is template and spec")


class Pods(Strict):
    """Pods that differ only by their part and their index."""

    template: FieldPath | None = optional("The field with the pod template.")
    like: Like | None = optional("The pods are those of another kind, at another place.")
    build: Build | None = optional("The fields from which the controller makes the pod template.")
    when: Several[ReplicaCondition] | None = optional(
        "There are such pods if all of these hold of the object, or of the entry of "
        "`each`. Only conditions on a field."
    )
    any_of: Several[FieldPath] | None = optional(
        "There are such pods if one of these fields is present."
    )
    each: FieldPath | None = optional(  # as in the API
        "The field whose entries each have a template."
    )
    part: Text | None = optional("The name of this group of pods.")
    count: Count | None = optional("The number of pods. Default: one.")
    first: FieldPath | None = optional("The field with the first ordinal. Default: 0.")
    owned: bool | None = optional("True if the object is the controller of the pods.")
    drop_metadata: bool | None = optional(
        "True if the pods do not get the metadata of the template."
    )
    unmarked: Word | None = optional(
        "What an author can do if the system leaves these pods without a mark, though "
        "they belong to the run. Authors of such objects get it as a warning."
    )
    adds: Several[Addition] | None = optional("Metadata that the controller adds to the pods.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Require one way to find a template."""
        yield from _one_of(given, "template", "like", "build")
        when = given.get("when")
        for position, condition in enumerate(when if isinstance(when, list) else ()):
            if isinstance(condition, Mapping) and "field" not in condition:
                yield Problem(("when", position), "want a condition on a field")
        like = given.get("like")
        if isinstance(like, Mapping) and like.get("object") == "." and "each" not in given:
            what = "an object cannot create itself; name one of its fields, or give each"
            yield Problem(("like", "object"), what)


class PodKind(Strict):
    """A kind that creates pods."""

    group: str = Field(max_length=MAX_SUBDOMAIN, description="The API group; empty for the core's.")
    kind: Word = Field(description="The kind.")
    versions: Several[Word] | None = optional("The versions that this describes. Default: all.")
    resource: Word | None = optional(
        "Its name in paths of the API; if given, its authors get warnings."
    )
    claims: Several[FieldPath] | None = optional(
        "Fields with claims or volumes, for each of which the controller adds a volume to the pods."
    )
    only_mounted: bool | None = optional(
        "True if a pod gets only those volumes that one of its containers mounts."
    )
    reusable: bool | None = optional(
        "True if objects create no pods, but are templates for others."
    )
    code: Word | None = optional("The module that describes the pods, if a file cannot.")
    not_read: Several[FieldPath] | None = optional(
        "Fields that describe or change pods, and that this file does not cover. Commands and "
        "warnings name them."
    )
    pods: Several[Pods] | None = optional("Its pods; leave it out if they cannot be predicted.")


class SourceSpec(Strict):
    """A system: how its pods are recognized, and its kinds that create pods."""

    system: Word = Field(description="The system's name in prose.")
    origin: str | None = optional(
        "The source of its marks: file and project.", max_length=MAX_PROSE
    )
    note: str | None = optional("Notes for the table of marks.", max_length=MAX_PROSE)
    identity: Identity | None = optional("How its pods are recognized.")
    kinds: Several[PodKind] | None = optional("Its kinds that create pods.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Something must be described."""
        if given.get("identity") is None and not given.get("kinds"):
            yield Problem((), "want identity, kinds, or both; there is none")


class SourceMetadata(Metadata):
    """The name of a source. Fields that the API server adds are accepted, and not read."""

    refused: ClassVar[Mapping[str, str]] = {
        "namespace": "sources hold for the whole cluster; remove it",
        "generateName": "give a name: `fairlead install --source` uses the source's name",
    }


class RunSource(PolicyObject):
    """A system that creates pods: the labels by which its pods are recognized, and its kinds."""

    kind: Literal["RunSource"] = Field(description="The kind of document.")
    metadata: SourceMetadata = Field(description="The source's name.")
    spec: SourceSpec = Field(description="The system.")


_SOURCES: Final = Forms({"RunSource": RunSource}, "files of systems")


def parse(files: Mapping[str, bytes]) -> reader.Documents[RunSource]:
    """Parse files of systems, by name. Raises nothing."""
    return reader.read_files(files, _SOURCES)
