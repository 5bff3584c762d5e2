"""What Ray's pods run where a component leaves it to KubeRay.

Read in KubeRay (`ray-operator/controllers/ray/common/pod.go`: ray start with the parameters as
flags; `job.go`: the entrypoint is submitted to the head's dashboard).
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.item import plain
from webhook.convert.polyaxon.placement import texts
from webhook.convert.polyaxon.values import want_mapping, want_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes

HEAD: Final = "head"
DRIVER: Final = "driver"
_SHELL: Final = ("/bin/sh", "-c")
_START: Final = {
    HEAD: "ray start --head --port=$RAY_PORT --dashboard-host=0.0.0.0",
    "worker": "ray start --address=$RAY_ADDRESS",
}
# Set above, or by the resources of the container.
_OURS: Final = frozenset({"port", "address", "dashboard-host", "block", "head"})
# The driver is told where the dashboard is: RAY_API_SERVER_ADDRESS.
_WAIT: Final = "until ray job list >/dev/null 2>&1; do sleep 2; done"
_VARIABLES: Final = "env_vars"
_KEPT: Final = ("name", "image", "imagePullPolicy", "volumeMounts")


def start(role: str, main: dict[str, Draft], params: Item | None, notes: Notes) -> None:
    """Gives the main container of a head or a worker its command, if it has none of its own."""
    if role not in _START or main.get("command") or main.get("args"):
        return
    flags = []
    for name, value in want_mapping(params, notes).items() if params is not None else ():
        text = want_text(value, notes)
        if name not in _OURS and text is not None:
            flags.append(f"--{name}={shlex.quote(text)}")
    main["command"] = list(_SHELL)
    main["args"] = [" ".join([f"exec {_START[role]}", *flags, "--block"])]


def driver(
    head: dict[str, Draft], entrypoint: str, runtime_env: Item | None, notes: Notes
) -> dict[str, Draft]:
    """The main container of the replica that submits the program, and ends with it.

    runtime_env: what Ray sets up for the program, its variables among it, as KubeRay submits it.
    """
    container: dict[str, Draft] = {name: head[name] for name in _KEPT if name in head}
    container["command"] = list(_SHELL)
    flag = ""
    if runtime_env is not None and (fields := want_mapping(runtime_env, notes)):
        flag = f" --runtime-env-json {shlex.quote(_as_json(fields, notes))}"
    container["args"] = [f"{_WAIT}; exec ray job submit{flag} -- {entrypoint}"]
    return container


def _as_json(runtime_env: Mapping[str, Item], notes: Notes) -> str:
    """With variables as text, as Ray wants them, and what readers of YAML dispute as written."""
    values = {
        name: plain(texts(item, notes) if name == _VARIABLES else item)
        for name, item in runtime_env.items()
    }
    return json.dumps(values, ensure_ascii=False, default=lambda disputed: disputed.text)
