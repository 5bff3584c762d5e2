"""The security context of a pod (v1.PodSecurityContext)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from webhook.placement.schema.syntax import ObjectName, SysctlName, WindowsUserName
from webhook.strict import Problem, Strict, distinct, optional

Id: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]


class _Profile(Strict):
    """A profile of a container, from the runtime or the node."""

    type: Literal["RuntimeDefault", "Localhost", "Unconfined"] = Field(
        description="Where the profile comes from."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        kind, profile = given.get("type"), given.get("localhostProfile")
        if kind == "Localhost" and not profile:
            yield Problem((), "type Localhost needs a localhostProfile")
        elif kind in ("RuntimeDefault", "Unconfined") and profile is not None:
            yield Problem(("localhostProfile",), "goes with type Localhost only")


class SeccompProfile(_Profile):
    """The system calls that the pod's processes may make."""

    localhost_profile: str | None = optional("The profile's file on the node, for type Localhost.")


class AppArmorProfile(_Profile):
    """The AppArmor profile that confines the pod's processes."""

    localhost_profile: str | None = optional("The profile's name on the node, for type Localhost.")


class SELinuxOptions(Strict):
    """The SELinux context of the pod's processes."""

    user: str | None = optional("The SELinux user.")
    role: str | None = optional("The SELinux role.")
    type: str | None = optional("The SELinux type.")
    level: str | None = optional("The SELinux level.")


class WindowsSecurityContextOptions(Strict):
    """Settings for pods on Windows nodes."""

    gmsa_credential_spec_name: ObjectName | None = optional("The name of the GMSA credential spec.")
    gmsa_credential_spec: str | None = optional(
        "The GMSA credential spec itself.", min_length=1, max_length=64 * 1024
    )
    run_as_user_name: WindowsUserName | None = optional(
        "The user in Windows that runs the processes."
    )
    host_process: Literal[False] | None = optional(
        "Run the containers as processes of the host. Only false is allowed: true requires the "
        "host's network too, which is not a placement field."
    )


class Sysctl(Strict):
    """A kernel parameter of the pod's namespaces."""

    name: SysctlName = Field(description="The parameter's name.")
    value: str = Field(description="Its value, in quotes if it is a number.")


def _one_value_a_parameter(sysctls: list[Sysctl]) -> list[Sysctl]:
    return distinct(sysctls, [sysctl.name for sysctl in sysctls], ("name",), "the parameter")


class PodSecurityContext(Strict):
    """The security settings of the whole pod. They are merged key by key, like nodeSelector."""

    run_as_user: Id | None = optional("The numeric user that runs the processes; 0 is root.")
    run_as_group: Id | None = optional("The numeric primary group of the processes.")
    run_as_non_root: bool | None = optional(
        "True if the kubelet rejects containers that would run as root."
    )
    fs_group: Id | None = optional("The group that owns the pod's volumes, where they allow it.")
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = optional(
        "When the ownership of a volume's files is changed to fsGroup."
    )
    supplemental_groups: list[Id] | None = optional("Further groups of the processes.")
    supplemental_groups_policy: Literal["Merge", "Strict"] | None = optional(
        "Merge adds the groups that the image's /etc/group names. Strict does not."
    )
    seccomp_profile: SeccompProfile | None = optional(
        "The system calls that the processes may make."
    )
    app_armor_profile: AppArmorProfile | None = optional(
        "The AppArmor profile that confines the processes."
    )
    se_linux_options: SELinuxOptions | None = optional("The SELinux context of the processes.")
    se_linux_change_policy: Literal["MountOption", "Recursive"] | None = optional(
        "How volumes get their SELinux labels. MountOption is rejected: its feature gate is off."
    )
    sysctls: Annotated[list[Sysctl], AfterValidator(_one_value_a_parameter)] | None = optional(
        "Kernel parameters of the pod's namespaces."
    )
    windows_options: WindowsSecurityContextOptions | None = optional(
        "Settings for pods on Windows nodes."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """As validateSELinuxChangePolicy has it with the default of the gate SELinuxMount."""
        if given.get("seLinuxChangePolicy") == "MountOption":
            yield Problem(
                ("seLinuxChangePolicy",),
                "an API server up to 1.36 refuses MountOption, as its feature gate SELinuxMount is "
                "off by default: use Recursive",
            )
