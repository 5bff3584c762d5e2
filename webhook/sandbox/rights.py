"""The rights of both programs in a sandbox: those that the manifests give their ServiceAccounts."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import SandboxError
from webhook.installation.manifests import DEFAULT, components, render
from webhook.installation.object_kinds import DEPLOYMENT, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from webhook.sandbox.control_plane import ControlPlane

_KINDS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
# The namespace of a program that runs in no pod.
_OUTSIDE: Final = "default"


def account(
    plane: ControlPlane, program: str, options: Sequence[str] = (), more: Sequence[str] = ()
) -> Path:
    """Return the kubeconfig of a program's ServiceAccount, with the rights of an installation.

    `program` is names.WEBHOOK or names.CONTROLLER, `options` are its own. Its roles are those of
    the default overlay, of each component that gives the program one of these options, and of the
    components `more`. Those of a namespace are for its Lease and its Secrets, and are created in
    the namespace of these. What is there already stays, such as an installation's own. Raises
    SandboxError if the API server refuses one.
    """
    given = _flags(options)
    wanted = [component for component in components() if _added(program, component) & given]
    secret, _, _ = _value(options, "--tls-secret").rpartition("/")
    homes = (_value(options, "--lease-namespace"), _value(options, "--namespace"), secret)
    home = next(filter(None, homes), _OUTSIDE)
    for key, manifest in render((DEFAULT,), [*wanted, *more]).items():
        if key.kind.name not in _KINDS:
            continue
        if key.namespace:
            manifest["metadata"]["namespace"] = home
        status, answer = plane.api.call("POST", str(key.kind.path(home)), manifest)
        if status not in (HTTPStatus.CREATED, HTTPStatus.CONFLICT):
            raise SandboxError(f"{key}: {answer['message']}")
    return plane.layout.kubeconfig_of(program)


@cache
def _added(program: str, component: str) -> set[str]:
    """Return the flags that a component adds to the arguments of a program's Deployment."""
    return _flags(_arguments(program, [component])) - _flags(_arguments(program))


def _arguments(program: str, with_components: Sequence[str] = ()) -> Iterator[str]:
    deployment: dict[str, Any] = render((DEFAULT,), with_components)[
        key_of(DEPLOYMENT, program, names.NAMESPACE)
    ]
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        yield from container["args"]


def _flags(options: Iterable[str]) -> set[str]:
    return {option.partition("=")[0] for option in options if option.startswith("--")}


def _value(options: Sequence[str], name: str) -> str:
    """Return the last value of an option, as `--name value` or `--name=value`; else empty."""
    words = [word for option in options for word in option.split("=", maxsplit=1)]
    return next((words[at + 1] for at in reversed(range(len(words))) if words[at] == name), "")
