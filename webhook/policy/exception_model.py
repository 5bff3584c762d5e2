"""The document PlacementException: pods in which policies take no part, until when, and why."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from webhook.placement.schema.limits import MAX_LISTED, crowded
from webhook.placement.schema.moments import Moment
from webhook.placement.schema.syntax import MAX_SUBDOMAIN, SUBDOMAIN_PATTERN, is_subdomain
from webhook.policy.match_model import Match
from webhook.policy.metadata_model import Metadata
from webhook.strict import Problem, Strict, distinct, own_error, shown

# Stands for every policy, those included that come later.
ALL: Final = "*"
# An explanation has room for it in a line or a few.
_LONGEST_REASON: Final = 500
POLICY_NAME_PATTERN: Final = rf"^(\*|{SUBDOMAIN_PATTERN})$"
REASON_PATTERN: Final = r"[^ \t\r\n]"


def _policy_name(text: str) -> str:
    if text != ALL and not is_subdomain(text):
        raise own_error(
            f"{shown(text)} is not a policy's name: lower-case letters, digits, '-' or '.', or "
            f"{ALL} alone for all policies"
        )
    return text


def _policies(listed: list[str]) -> list[str]:
    if ALL in listed and len(listed) > 1:
        raise own_error(f"{ALL} stands for all policies: leave out the others, or leave out {ALL}")
    return distinct(listed, listed, (), "the name")


def _said(text: str) -> str:
    if not text.strip(" \t\r\n"):
        raise own_error("is blank; say why these pods may pass")
    return text


def _not_for_all(match: Match) -> Match:
    if match.is_empty:
        raise own_error(
            "an empty block would let every pod pass; give a condition, or if you mean every pod "
            'say so: namespaces: ["*"]'
        )
    return match


PolicyName = Annotated[
    str,
    AfterValidator(_policy_name),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": POLICY_NAME_PATTERN,
            "maxLength": MAX_SUBDOMAIN,
        }
    ),
]
Reason = Annotated[
    str,
    Field(min_length=1, max_length=_LONGEST_REASON),
    AfterValidator(_said),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": _LONGEST_REASON,
            "pattern": REASON_PATTERN,
        }
    ),
]


class ExceptionMetadata(Metadata):
    """The name of an exception. What the API server adds to an object is accepted, and not read."""

    refused: ClassVar[Mapping[str, str]] = {
        "namespace": "exceptions hold for the whole cluster; remove it, and name the pod's "
        "namespace in spec.match",
        "generateName": "give a name: stamps and the audit log tell of an exception by its name",
    }


class ExceptionSpec(Strict):
    """Which policies take no part in the decision on which pods, until when, and why."""

    policies: Annotated[list[PolicyName], AfterValidator(_policies)] = Field(
        min_length=1,
        max_length=MAX_LISTED,
        description="The names of the policies that take no part, whether they are enforced or "
        "under Audit; * alone stands for all of them.",
    )
    match: Annotated[Match, AfterValidator(_not_for_all)] = Field(
        description="The pods that may pass, by the conditions of a policy's match. It must name "
        "one; namespaces: ['*'] means the pods of every run."
    )
    until: Moment = Field(
        description="The moment at which it ends, in RFC 3339: 2026-12-01T18:00:00Z. From then on "
        "the policies decide on new pods as before; pods that passed stay as they are."
    )
    reason: Reason = Field(description="Why, for whoever asks later: what is done, and by whom.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """No list is longer than the API server would take."""
        yield from crowded(dict(given), ())


class PlacementException(Strict):
    """An exception: pods in which policies take no part, until a moment, for a reason."""

    api_version: Literal["fairlead.dev/v1alpha1"] = Field(description="The version of this form.")
    kind: Literal["PlacementException"] = Field(description="The kind of this document.")
    metadata: ExceptionMetadata = Field(description="The exception's name.")
    spec: ExceptionSpec = Field(description="What the exception says.")
    status: Any = Field(default=None, exclude=True, description="Set by Fairlead; not read.")

    @property
    def name(self) -> str:
        """The exception's name, unique among exceptions."""
        return self.metadata.name
