"""The model of PolicyTest, and its JSON Schema for editors.

Above 300 lines: one document, field by field.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from webhook import names
from webhook.evaluation.plugins import READ_OBJECTS
from webhook.placement import fields as placement
from webhook.placement.fallback import MOST_DISRUPTIONS
from webhook.placement.schema.placement import SETTABLE
from webhook.placement.schema.scheduling import Taint, Toleration
from webhook.placement.schema.syntax import (
    AnnotationKey,
    LabelKey,
    LabelValue,
    Moment,
    NamespaceName,
    ObjectName,
    Quantity,
    ResourceName,
    span,
)
from webhook.pod_schema import field_checks, object_rules, template_rules, text_rules
from webhook.policy.yaml_tree import Disputed
from webhook.strict import Problem, Strict, distinct, guess, optional

Text = Annotated[str, Field(min_length=1)]
# Results without a placement.
WITHOUT_PLACEMENT: Final = ("rejected", "not-a-run", "not-sent")
WITH_REASON: Final = ("rejected", "left-alone", "not-sent")


class Node(Strict):
    """A node of the tests. kubernetes.io/hostname, /os and /arch are filled in."""

    name: ObjectName = Field(description="The node's name.")
    labels: dict[LabelKey, LabelValue] | None = optional(
        "The node's labels. Unless they are here, kubernetes.io/hostname (the name), "
        "kubernetes.io/os (linux) and kubernetes.io/arch (amd64) are added."
    )
    taints: list[Taint] | None = optional("The node's taints.")
    unschedulable: bool | None = optional("Whether the node is cordoned.")
    allocatable: dict[ResourceName, Quantity] | None = optional(
        "What pods can request of the node, as in its status. pods is 110 unless it is "
        "here. Without allocatable, runsOn does not consider requests."
    )


class Cluster(Strict):
    """Values that the cluster fills in, and that no author wrote."""

    default_priority_class: ObjectName | None = optional(
        "The PriorityClass that is the cluster's default."
    )
    plugins: list[Literal["ExtendedResourceToleration", "PodTolerationRestriction"]] | None = (
        optional(
            "Which of these admission plugins the API server runs; [] for none. Left out, it is "
            "unknown, and a test of runsOn that depends on them fails."
        )
    )
    objects: list[dict[str, Any]] | None = optional(
        "PriorityClasses, RuntimeClasses, LimitRanges and Kueue's ResourceFlavors as kubectl "
        "prints them, by which pods are changed before policies apply, and workloads that own the "
        "pods, whose selectors pods must meet with the labels of policies. What names no namespace "
        "is in that of each test."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Objects of other kinds would be ignored."""
        objects = given.get("objects")
        for at, manifest in enumerate(objects if isinstance(objects, list) else ()):
            if isinstance(manifest, dict) and manifest.get("kind") not in READ_OBJECTS:
                kinds = " or ".join(READ_OBJECTS)
                yield Problem(("objects", at, "kind"), f"want {kinds}, not {manifest.get('kind')}")
            elif isinstance(manifest, dict) and not _name_of(manifest):
                yield Problem(("objects", at, "metadata", "name"), "give the object's name")


def _name_of(value: Mapping[str, Any]) -> object:
    metadata = value.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None


class Pod(Strict):
    """A v1.Pod as sent to the webhook. Other required fields of a pod can be left out."""

    refused: ClassVar[Mapping[str, str]] = {}

    api_version: Literal["v1"] | None = optional("v1, if it is written.")
    kind: Literal["Pod"] | None = optional("Pod, if it is written.")
    labels: dict[str, str] | None = optional("Short for metadata.labels.")
    annotations: dict[str, str] | None = optional("Short for metadata.annotations.")
    metadata: dict[str, Any] | None = optional("The pod's metadata; its name is filled in.")
    spec: dict[str, Any] | None = optional("The pod's spec; without containers it gets one.")
    status: Any = Field(default=None, exclude=True, description="Not read.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """No unknown field at any depth, and no duplicates."""
        metadata = given.get("metadata")
        for part, kind in (("spec", "PodSpec"), ("metadata", "ObjectMeta")):
            # An unknown field would be ignored, and test nothing.
            for fault in field_checks.faults(_undisputed(given.get(part)), kind, whole=False):
                yield Problem((part, *fault.path), fault.message)
        yield from (
            Problem(fault.path, fault.message) for fault in _refused(_undisputed(dict(given)))
        )
        for name in ("labels", "annotations"):
            if isinstance(metadata, dict) and given.get(name) is not None and name in metadata:
                yield Problem((name,), f"is also in metadata.{name}; keep one of the two")


def _refused(given: Mapping[str, Any]) -> Iterator[field_checks.Fault]:
    """Yield what the API server rejects in the written pod; missing fields are filled in."""
    spec, metadata = given.get("spec"), given.get("metadata")
    for fault in template_rules.faults(spec, more_volumes=True):
        if fault.severity == "error" and _is_written(spec, fault.path):
            yield fault._replace(path=("spec", *fault.path))
    valid_metadata = metadata if isinstance(metadata, dict) else {}
    bound = isinstance(spec, dict) and bool(spec.get("nodeName"))
    for holder, path in ((valid_metadata, ("metadata",)), (given, ())):
        yield from object_rules.label_faults(holder.get("labels"), (*path, "labels"))
        at = (*path, "annotations")
        yield from text_rules.annotation_faults(holder.get("annotations"), at, bound=bound)
    yield from text_rules.name_faults(valid_metadata)


def _is_written(value: Any, path: field_checks.Path) -> bool:
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _undisputed(value: Any) -> Any:
    """Return the value without ambiguous scalars, which are reported elsewhere."""
    if isinstance(value, dict):
        return {key: _undisputed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_undisputed(item) for item in value]
    return None if isinstance(value, Disputed) else value


def _type_of(field: placement.Field) -> Any:
    if field.shape is placement.Shape.SCALAR:
        return type(field.unset)
    if field.shape is placement.Shape.LIST:
        return list[dict[str, Any]]
    texts = field.shape is placement.Shape.MAP and field.filled_in is None
    return dict[str, str] if texts else dict[str, Any]


def _expected(field: placement.Field) -> tuple[Any, Any]:
    but = f", without {names.PLACEMENT}" if field.name == "annotations" else ""
    description = f"The pod's {field.holder}.{field.name}{but}."
    return _type_of(field) | None, optional(description)


if TYPE_CHECKING:
    Fields = Strict
else:
    Fields = create_model(
        "Fields",
        __base__=Strict,
        __doc__="Placement fields of the pod after the decision.",
        __module__=__name__,
        **{
            name: _expected(placement.BY_NAME[name])
            for name in SETTABLE
            if placement.BY_NAME[name] in placement.OF_PODS
        },
    )


class Lacking(Strict):
    """What the pod must not have after the decision."""

    node_selector: list[LabelKey] | None = optional("Keys that spec.nodeSelector must not have.")
    tolerations: list[Toleration] | None = optional(
        "Tolerations that the pod must not have. One covers all tolerations that "
        "contain it: {key: spot, operator: Exists} covers every effect."
    )
    security_context: list[Text] | None = optional(
        "Members that spec.securityContext must not have."
    )
    labels: list[LabelKey] | None = optional("Keys that metadata.labels must not have.")
    annotations: list[AnnotationKey] | None = optional(
        "Keys that metadata.annotations must not have."
    )


class Audited(Strict):
    """What policies under Audit would have done."""

    policies: list[Text] | None = optional(
        "The policies under Audit that matched: these and no others."
    )
    differs: bool | None = optional("Whether anything would have come out otherwise.")
    rejection: Text | None = optional(
        "Text of the reason for which they would have rejected the pod."
    )


def _empty(given: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name in ("equals", "contains", "lacks", "audited"):
        if given.get(name) == {}:
            yield (name,)
        # What equals nothing is unset.
        elif name in ("contains", "lacks") and isinstance(given.get(name), dict):
            yield from ((name, field) for field, value in given[name].items() if value in ({}, []))


class Expectation(Strict):
    """What must come out. What is not written is not asked, but that the pod is admitted."""

    result: (
        Literal["placed", "unchanged", "left-alone", "rejected", "not-a-run", "not-sent"] | None
    ) = optional(
        "What became of the pod; not-sent in kube-system and fairlead-system. Left "
        "out, anything but rejected."
    )
    reason: Text | None = optional(
        "Text of the reason why the pod was rejected, left alone or not sent."
    )
    policies: list[Text] | None = optional(
        "The enforced policies that match: exactly these. A test in which no enforced "
        "policy matches fails unless this is [], or the test expects something of audited."
    )
    warnings: list[Text] | None = optional(
        "Each is text of some warning to the pod's author; [] means that there is none. "
        "With nodes, one warns that none of them admits the pod. A label of ours that "
        "cannot be read fails the test unless its warning is expected here."
    )
    equals: Fields | None = optional(
        "Fields that must be exactly this, in the pod as the API server stores it, with its "
        'defaults; {} and [] and "" mean that it is unset.'
    )
    contains: Fields | None = optional(
        "Values that fields must contain: maps these members, and lists for each item "
        "one that contains it."
    )
    lacks: Lacking | None = optional("Values that the stored pod must not have.")
    runs_on: list[ObjectName] | None = optional(
        "Of the nodes, those that admit the pod by their labels, taints, cordon and "
        "allocatable: these and no others; [] means none. Without nodes it fails."
    )
    audited: Audited | None = optional("What policies under Audit would have done.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Report an expectation that contradicts itself, or is empty."""
        if not any(value is not None for value in given.values()):
            yield Problem((), "expects nothing; give at least the result")
        for at in _empty(given):
            yield Problem(at, "is empty and expects nothing; fill it in, or remove it")
        result = given.get("result")
        if given.get("reason") is not None and result not in WITH_REASON:
            yield Problem(("reason",), "is valid with result: rejected, left-alone or not-sent")
        if result in WITHOUT_PLACEMENT:
            for name in ("equals", "contains", "lacks", "runsOn"):
                if given.get(name) is not None:
                    yield Problem((name,), f"nothing is placed with result: {result}")


class ClassHistory(Strict):
    """What happened to a pod's replica on nodes of one class until now."""

    disruptions: int = Field(
        default=0, ge=0, le=MOST_DISRUPTIONS, description="How many of its nodes were lost."
    )
    pending: span("1s", "24h") | None = optional(  # type: ignore[valid-type]
        "How long it has waited for such a node."
    )


class Case(Strict):
    """One test: a pod, where it comes from, and what must come out."""

    name: Text = Field(description="What the test shows, in a sentence.")
    pod: Pod = Field(description="The pod as it comes to the webhook.")
    namespace: NamespaceName = Field(default="default", description="The pod's namespace.")
    namespace_labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict,
        description="The labels of the namespace; kubernetes.io/metadata.name is added.",
    )
    now: Moment | None = optional(
        "When the pod comes: exceptions are in force until their end. Left out, none "
        "of them is in force."
    )
    history: dict[ObjectName, ClassHistory] = Field(
        default_factory=dict,
        description="What happened to the pod's replica, by capacity class, as Fairlead's "
        "controller says it: fallbacks of policies depend on it.",
    )
    user: str = Field(
        default="",
        description="Who creates the pod, such as "
        "system:serviceaccount:kube-system:daemon-set-controller.",
    )
    expect: Expectation = Field(description="What must come out.")


def _one_of_a_name(cases: list[Case]) -> list[Case]:
    return distinct(cases, [case.name for case in cases], ("name",), "the name")


def _one_node_of_a_name(nodes: list[Node]) -> list[Node]:
    return distinct(nodes, [node.name for node in nodes], ("name",), "the name")


class PolicyTest(Strict):
    """Tests of the policies in some files or folders."""

    api_version: Literal["fairlead.dev/v1alpha1"] = Field(description="The version of this form.")
    kind: Literal["PolicyTest"] = Field(description="The kind of this document.")
    policies: list[Text] = Field(
        default_factory=lambda: ["."],
        min_length=1,
        description="Files and folders with the policies and capacity classes under test, "
        "relative to this file. Left out, the folder that it is in.",
    )
    cluster: Cluster | None = optional("What the cluster fills in.")
    nodes: Annotated[list[Node], AfterValidator(_one_node_of_a_name)] = Field(
        default_factory=list, description="The nodes that runsOn and a pod's nodeName refer to."
    )
    tests: Annotated[list[Case], AfterValidator(_one_of_a_name)] = Field(
        min_length=1, description="The tests."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """runsOn names nodes of the test."""
        nodes, tests = given.get("nodes") or [], given.get("tests")
        if not isinstance(nodes, list) or not isinstance(tests, list):
            return
        names = tuple(str(n.get("name") if isinstance(n, dict) else n) for n in nodes)
        for at, case in enumerate(tests):
            expect = case.get("expect") if isinstance(case, dict) else None
            wanted = expect.get("runsOn") if isinstance(expect, dict) else None
            for position, name in enumerate(wanted if isinstance(wanted, list) else ()):
                if isinstance(name, str) and name not in names:
                    listed_names = ", ".join(names) or "none is given"
                    yield Problem(
                        ("tests", at, "expect", "runsOn", position),
                        f"there is no node {name!r} (nodes: {listed_names}){guess(name, names)}",
                    )


class _Plain(GenerateJsonSchema):
    """The schema as a person would write it, without null."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  pydantic's signature
        return False


def schema() -> dict[str, Any]:
    """Return the schema of a PolicyTest document."""
    return {
        "$schema": _Plain.schema_dialect,
        **PolicyTest.model_json_schema(by_alias=True, schema_generator=_Plain),
        "title": "Fairlead PolicyTest",
    }
