"""The model of match blocks."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field, WithJsonSchema

from webhook import names
from webhook.dns_names import MAX_LABEL, MAX_SUBDOMAIN
from webhook.frameworks.table import FRAMEWORKS
from webhook.placement.schema.selectors import LabelSelector
from webhook.placement.schema.syntax import ResourceName
from webhook.strict import Strict, guess, own_error, quoted

# The volume sources of v1.VolumeSource, as a pod's volume names them.
VOLUME_SOURCES: Final = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
)

_GLOB_PATTERN: Final = f"[-a-z0-9*?]{{1,{MAX_LABEL}}}"
_glob = re.compile(_GLOB_PATTERN, re.ASCII)
_ACCOUNT_PATTERN: Final = f"[-a-z0-9.*?]{{1,{MAX_SUBDOMAIN}}}"
_account = re.compile(_ACCOUNT_PATTERN, re.ASCII)


def _namespace_glob(text: str) -> str:
    if _glob.fullmatch(text) is None:
        raise own_error(
            f"{quoted(text)} can be no namespace: 1 to {MAX_LABEL} lower-case letters, digits "
            "and '-', with * for any text and ? for one character"
        )
    return text


def _account_glob(text: str) -> str:
    if _account.fullmatch(text) is None:
        raise own_error(
            f"{quoted(text)} is not a valid service account name: 1 to {MAX_SUBDOMAIN} "
            "lower-case letters, digits, '-' and '.', with * for any text and ? for one "
            "character; give the name without the namespace"
        )
    return text


class _OneOf:
    """Checks that a text is one of `known`; otherwise the error lists them."""

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def __call__(self, text: str) -> str:
        if text not in self.known:
            hint = guess(text, self.known)
            raise own_error(f"{quoted(text)} is not one of {', '.join(self.known)}{hint}")
        return text


def _enum(known: tuple[str, ...]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(known)})


NamespaceGlob = Annotated[
    str,
    AfterValidator(_namespace_glob),
    WithJsonSchema({"type": "string", "pattern": f"^{_GLOB_PATTERN}$"}),
]
ServiceAccountGlob = Annotated[
    str,
    AfterValidator(_account_glob),
    WithJsonSchema({"type": "string", "pattern": f"^{_ACCOUNT_PATTERN}$"}),
]
Kind = Annotated[str, AfterValidator(_OneOf(names.KINDS)), _enum(names.KINDS)]
Framework = Annotated[str, AfterValidator(_OneOf(tuple(FRAMEWORKS))), _enum(tuple(FRAMEWORKS))]
Role = Annotated[str, AfterValidator(_OneOf(names.ROLES)), _enum(names.ROLES)]
VolumeSource = Annotated[str, AfterValidator(_OneOf(VOLUME_SOURCES)), _enum(VOLUME_SOURCES)]
Index = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Match(Strict):
    """Conditions on a pod. All must hold; without conditions, the pods of every run match."""

    namespaces: list[NamespaceGlob] | None = Field(
        default=None,
        min_length=1,
        description="The pod's namespace is one of these. * stands for any text, ? for one "
        "character.",
    )
    namespace_selector: LabelSelector | None = Field(
        default=None, description="Selects the pod's namespace by its labels."
    )
    pod_selector: LabelSelector | None = Field(
        default=None, description="Selects the pod by its labels at creation."
    )
    kinds: list[Kind] | None = Field(
        default=None,
        min_length=1,
        description="The kind of the run. A pod without a kind counts as a job.",
    )
    frameworks: list[Framework] | None = Field(
        default=None,
        min_length=1,
        description="The run's framework. A pod without a framework matches none.",
    )
    roles: list[Role] | None = Field(
        default=None,
        min_length=1,
        description="The replica's role in its run. A pod without a role matches none.",
    )
    replica_indexes: list[Index] | None = Field(
        default=None,
        min_length=1,
        description="The replica's index within its role, from 0. A pod without an index matches "
        "none.",
    )
    coordinator: bool | None = Field(
        default=None,
        description="Whether the replica leads its run: master, chief, launcher, scheduler, "
        "driver, head, or worker 0 if worker 0 leads.",
    )
    resources: list[ResourceName] | None = Field(
        default=None,
        min_length=1,
        description="The pod or one of its containers requests one of these resources.",
    )
    volumes: list[VolumeSource] | None = Field(
        default=None,
        min_length=1,
        description="The pod has a volume of one of these types, named like the volume's field "
        "in a pod.",
    )
    service_accounts: list[ServiceAccountGlob] | None = Field(
        default=None,
        min_length=1,
        description="The pod's spec.serviceAccountName is one of these. * stands for any text, "
        "? for one character. A pod without one has 'default'. A user who can "
        "create pods in a namespace can name any service account there, so this "
        "field is not a security boundary within a namespace. To distinguish "
        "accounts with the same name in two namespaces, add namespaces. If another "
        "webhook changes the account after Fairlead, the API server calls Fairlead "
        "again: policies for the new account apply too, and what policies for the "
        "old account wrote stays.",
    )

    @property
    def is_empty(self) -> bool:
        """Whether every pod of every run meets it: no condition, or selectors that select all."""
        conditions = (getattr(self, name) for name in type(self).model_fields)
        return all(
            value is None or (isinstance(value, LabelSelector) and value.is_empty)
            for value in conditions
        )
