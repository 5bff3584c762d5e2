"""The model of match blocks."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from webhook import names
from webhook.dns_names import LABEL, MAX_LABEL, MAX_SUBDOMAIN, is_label
from webhook.frameworks.table import FRAMEWORKS
from webhook.placement.quantity import InvalidQuantity, nanos
from webhook.placement.schema.selectors import LabelSelector
from webhook.placement.schema.syntax import (
    MAX_KEY,
    MAX_LISTED,
    Quantity,
    ResourceName,
    qualified_name_fault,
)
from webhook.pod_schema.field_checks import fields_of
from webhook.strict import Problem, Strict, check, guess, optional, own_error, quoted

# The volume sources of v1.VolumeSource, as a pod's volume names them.
VOLUME_SOURCES: Final = tuple(field for field in fields_of("Volume") if field != "name")

_GLOB_PATTERN: Final = f"[-a-z0-9*?]{{1,{MAX_LABEL}}}"
_glob = re.compile(_GLOB_PATTERN, re.ASCII)
_ACCOUNT_PATTERN: Final = f"[-a-z0-9.*?]{{1,{MAX_SUBDOMAIN}}}"
_account = re.compile(_ACCOUNT_PATTERN, re.ASCII)
_RESOURCE_PATTERN: Final = f"[-A-Za-z0-9_./*?]{{1,{MAX_KEY}}}"
_resource = re.compile(_RESOURCE_PATTERN, re.ASCII)


def _resource_fault(text: str) -> str:
    """Return why no resource can have this name, or a name of this glob; empty if one can."""
    is_glob = "*" in text or "?" in text
    if not is_glob or _resource.fullmatch(text) is None:
        return qualified_name_fault(text)
    return qualified_name_fault(text.replace("*", "x").replace("?", "x"))


def nanos_of(bound: object) -> int | None:
    """Return a quantity in nanos; None if it is none."""
    try:
        return nanos(bound) if isinstance(bound, str | int) else None
    except InvalidQuantity:
        return None


def _check_annotations(selector: LabelSelector) -> LabelSelector:
    for key in selector.keys:
        if key.startswith(names.PREFIX):
            raise own_error(
                f"{quoted(key)}: annotations under {names.PREFIX} change while Fairlead decides; "
                "select by others"
            )
    return selector


def _one_of(words: tuple[str, ...]) -> AfterValidator:
    """Check that a text is one of `words`; otherwise the error lists them."""
    return check(
        lambda text: text in words,
        lambda text: f"{quoted(text)} is not one of {', '.join(words)}{guess(text, words)}",
    )


def _enum(words: tuple[str, ...]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(words)})


NamespaceName = Annotated[
    str,
    check(is_label, lambda text: f"{quoted(text)} is not the name of a namespace"),
    WithJsonSchema({"type": "string", "pattern": f"^{LABEL}$", "maxLength": MAX_LABEL}),
]
NamespaceGlob = Annotated[
    str,
    check(
        _glob.fullmatch,
        lambda text: (
            f"{quoted(text)} can be no namespace: 1 to {MAX_LABEL} lower-case letters, digits "
            "and '-', with * for any text and ? for one character"
        ),
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{_GLOB_PATTERN}$"}),
]
ServiceAccountGlob = Annotated[
    str,
    check(
        _account.fullmatch,
        lambda text: (
            f"{quoted(text)} is not a valid service account name: 1 to {MAX_SUBDOMAIN} "
            "lower-case letters, digits, '-' and '.', with * for any text and ? for one "
            "character; give the name without the namespace"
        ),
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{_ACCOUNT_PATTERN}$"}),
]
ResourceGlob = Annotated[
    str,
    check(
        lambda text: not _resource_fault(text),
        lambda text: (
            f"{quoted(text)} is not a resource name: {_resource_fault(text)}; * stands for any "
            "text, ? for one character"
        ),
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{_RESOURCE_PATTERN}$"}),
]
Kind = Annotated[str, _one_of(names.KINDS), _enum(names.KINDS)]
Framework = Annotated[str, _one_of(tuple(FRAMEWORKS)), _enum(tuple(FRAMEWORKS))]
Role = Annotated[str, _one_of(names.ROLES), _enum(names.ROLES)]
VolumeSource = Annotated[str, _one_of(VOLUME_SOURCES), _enum(VOLUME_SOURCES)]
Index = Annotated[int, Field(ge=0, le=2**31 - 1)]


class RequestRange(Strict):
    """An amount of a resource that a pod requests."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["atLeast"]}, {"required": ["atMost"]}]},
    )

    resource: ResourceName = Field(description="The resource, such as nvidia.com/gpu.")
    at_least: Quantity | None = optional("The smallest amount, such as 8.")
    at_most: Quantity | None = optional("The largest amount.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Require a bound, and an amount within the bounds."""
        bounds = [(name, given[name]) for name in ("atLeast", "atMost") if name in given]
        if not bounds:
            yield Problem((), "needs atLeast or atMost; to match any amount, list it in resources")
        nanos_by_name = {}
        for name, bound in bounds:
            if (amount := nanos_of(bound)) is None:
                continue
            if amount <= 0:
                yield Problem((name,), "must be more than 0: without a request, no pod matches")
            nanos_by_name[name] = amount
        least, most = map(nanos_by_name.get, ("atLeast", "atMost"))
        if least is not None and most is not None and least > most > 0:
            yield Problem(("atMost",), "is less than atLeast, so no pod matches")


class Match(Strict):
    """Conditions on a pod. All must hold; without conditions, the pods of every run match."""

    namespaces: list[NamespaceGlob] | None = optional(
        "The pod's namespace is one of these. * stands for any text, ? for one character.",
        min_length=1,
    )
    namespace_selector: LabelSelector | None = optional(
        "Selects the pod's namespace by its labels."
    )
    pod_selector: LabelSelector | None = optional("Selects the pod by its labels at creation.")
    annotation_selector: Annotated[LabelSelector, AfterValidator(_check_annotations)] | None = (
        optional(
            "Selects the pod by its annotations at creation. The fields are those of a label "
            "selector; for a value that is not a label value, use Exists."
        )
    )
    kinds: list[Kind] | None = optional(
        "The kind of the run. A pod without a kind counts as a job.", min_length=1
    )
    frameworks: list[Framework] | None = optional(
        "The run's framework. A pod without a framework matches none.", min_length=1
    )
    roles: list[Role] | None = optional(
        "The replica's role in its run. A pod without a role matches none.", min_length=1
    )
    replica_indexes: list[Index] | None = optional(
        "The replica's index within its role, from 0. A pod without an index matches none.",
        min_length=1,
    )
    coordinator: bool | None = optional(
        "True if the replica leads its run: master, chief, launcher, scheduler, driver, head, or "
        "worker 0 if worker 0 leads."
    )
    resources: list[ResourceGlob] | None = optional(
        "The pod or one of its containers requests one of these resources. * stands for any text, "
        "? for one character: nvidia.com/mig-*.",
        min_length=1,
    )
    requests: list[RequestRange] | None = optional(
        "The pod requests one of these amounts. A pod's amount is the one that the scheduler "
        "counts for its containers together. A resource that the pod does not request never "
        "matches.",
        min_length=1,
        max_length=MAX_LISTED,
    )
    resource_claims: bool | None = optional(
        "True if the pod has claims of dynamic resource allocation (spec.resourceClaims). Their "
        "content is not read."
    )
    volumes: list[VolumeSource] | None = optional(
        "The pod has a volume of one of these types, named like the volume's field in a pod.",
        min_length=1,
    )
    service_accounts: list[ServiceAccountGlob] | None = optional(
        "The pod's spec.serviceAccountName is one of these. * stands for any text, ? for one "
        "character. A pod without one has 'default'. This field is not a security boundary within "
        "a namespace: a user who can create pods can name any service account there. To "
        "distinguish accounts with the same name in two namespaces, add namespaces. If another "
        "webhook changes the account after Fairlead, the API server calls Fairlead again. Policies "
        "for the new account apply too, and what policies for the old account wrote stays.",
        min_length=1,
    )

    @property
    def is_empty(self) -> bool:
        """Whether every pod of every run meets it: no condition, or selectors that select all."""
        conditions = (getattr(self, name) for name in type(self).model_fields)
        return all(
            value is None or (isinstance(value, LabelSelector) and value.is_empty)
            for value in conditions
        )
