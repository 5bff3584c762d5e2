"""Runtimes of one pod: jobs, and services, among them notebooks and tensorboards."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.run.polyaxon.components.pod import pod
from webhook.run.polyaxon.draft import given, settled
from webhook.run.polyaxon.values import want_list, want_whole

if TYPE_CHECKING:
    from webhook.run.polyaxon.components.pod import Given, Pod
    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.section import Section

_ONE: Final = "a service is one pod here; write a Deployment for more"
_LEFT_OUT: Final = {
    "rewrite_path": "there is no gateway that would rewrite paths",
    "is_external": "there is no gateway; put an Ingress before the Run's Service",
}
_EXIT_CODE: Final = "goes with distributed runtimes only; it is left out"
# What the command or the image is called.
_KINDS: Final = (
    ("notebook", re.compile(r"\bjupyter|\bnotebook|\brstudio\b|\bcode-server\b")),
    ("tensorboard", re.compile(r"\btensorboard\b")),
)


def job(section: Section, shared: Given) -> dict[str, Draft]:
    """The spec's part of a job."""
    made = pod(section, shared)
    policy = made.environment.restart_policy
    if policy is not None and policy.written == "ExitCode":
        section.notes.warning(policy, _EXIT_CODE)
    return _alone(made)


def service(section: Section, shared: Given) -> dict[str, Draft]:
    """The spec's part of a service, of the kind that it seems to be."""
    notes = section.notes
    made = pod(section, shared)
    ports: list[Draft] = []
    listed = section.given("ports")
    items = want_list(listed, notes) if listed else ()
    for item in items:
        number = want_whole(item, notes, least=1)
        if number is not None:
            port = item.holding(number)
            ports.append({"port": port} if len(items) == 1 else _named(port, number))
    replicas = section.given("replicas")
    if replicas is not None and want_whole(replicas, notes) not in (None, 1):
        notes.warning(replicas, _ONE)
    section.leave(_LEFT_OUT)
    return {"kind": _kind(made), **_alone(made), **given(ports=ports)}


def _named(port: Draft, number: int) -> dict[str, Draft]:
    return {"name": f"port-{number}", "port": port}


def _alone(made: Pod) -> dict[str, Draft]:
    template: Draft = {"spec": made.spec(with_resources=True)}
    return given(environment=made.environment.placement, template=template)


def _kind(made: Pod) -> str:
    words = [made.main.get(field) for field in ("command", "args", "image")]
    text = " ".join(str(settled(each)) for each in words if each is not None).lower()
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "service")
