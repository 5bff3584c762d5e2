"""The conditions by which a policy chooses pods, as they are written."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field, WithJsonSchema

from webhook import names
from webhook.placement.schema.selectors import LabelSelector
from webhook.placement.schema.syntax import ResourceName
from webhook.run.rendezvous.table import FRAMEWORKS
from webhook.strict import Strict, guess, own_error, shown

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

_GLOB_PATTERN: Final = "[-a-z0-9*?]{1,63}"
_glob = re.compile(_GLOB_PATTERN, re.ASCII)
_ACCOUNT_PATTERN: Final = "[-a-z0-9.*?]{1,253}"
_account = re.compile(_ACCOUNT_PATTERN, re.ASCII)


def _namespace_glob(text: str) -> str:
    if _glob.fullmatch(text) is None:
        raise own_error(
            f"{shown(text)} can be no namespace: 1 to 63 lower-case letters, digits and '-', "
            "with * for any text and ? for one character"
        )
    return text


def _account_glob(text: str) -> str:
    if _account.fullmatch(text) is None:
        raise own_error(
            f"{shown(text)} is not a valid service account name: 1 to 253 lower-case letters, "
            "digits, '-' and '.', with * for any text and ? for one character; give the name "
            "without the namespace"
        )
    return text


class _OneOf:
    """Checks that a text is one of `known`, and says which those are."""

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def __call__(self, text: str) -> str:
        if text not in self.known:
            hint = guess(text, self.known)
            raise own_error(f"{shown(text)} is not one of {', '.join(self.known)}{hint}")
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
    """Conditions on a pod. Every one that is given must hold; without any, every run is meant."""

    namespaces: list[NamespaceGlob] | None = Field(
        default=None,
        min_length=1,
        description="The pod's namespace is one of these; * stands for any text and ? for one "
        "character.",
    )
    namespace_selector: LabelSelector | None = Field(
        default=None, description="The labels of the pod's namespace."
    )
    pod_selector: LabelSelector | None = Field(
        default=None, description="The labels of the pod, as it came."
    )
    kinds: list[Kind] | None = Field(
        default=None, min_length=1, description="What the run is; a pod that does not say is a job."
    )
    frameworks: list[Framework] | None = Field(
        default=None,
        min_length=1,
        description="The run's framework. A pod without a framework matches none.",
    )
    roles: list[Role] | None = Field(
        default=None,
        min_length=1,
        description="What the replica does in its run. A pod without a role matches no role.",
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
        "driver, head, and worker 0 where worker 0 leads.",
    )
    resources: list[ResourceName] | None = Field(
        default=None,
        min_length=1,
        description="The pod, or a container of it, requests one of these resources.",
    )
    volumes: list[VolumeSource] | None = Field(
        default=None,
        min_length=1,
        description="The pod has a volume of one of these types, by its field's name in a pod.",
    )
    service_accounts: list[ServiceAccountGlob] | None = Field(
        default=None,
        min_length=1,
        description="The pod's spec.serviceAccountName is one of these; * stands for any text and "
        "? for one character. A pod without one has 'default'. Whoever creates pods in a namespace "
        "can name any service account there: the field is no boundary within a namespace, and "
        "accounts of one name in two namespaces are told apart by namespaces. If another webhook "
        "changes the account after Fairlead, the API server calls Fairlead again: policies for the "
        "new account apply too, and what those for the old one wrote stays.",
    )

    @property
    def is_empty(self) -> bool:
        """Whether every pod of every run meets it: no condition, or selectors that select all."""
        conditions = (getattr(self, name) for name in type(self).model_fields)
        return all(
            value is None or (isinstance(value, LabelSelector) and value.is_empty)
            for value in conditions
        )
