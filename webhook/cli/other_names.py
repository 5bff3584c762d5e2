"""Names that are no commands, and what answers instead: names of before, and those of kubectl."""

from __future__ import annotations

from typing import Final

# Decision 132: nothing was released under them, so they are not commands. By the words after
# `fairlead`.
RENAMED: Final[dict[str, str]] = {
    "audit": "policy audit",
    "certs": "webhook certs",
    "certs rotate": "webhook rotate",
    "certs status": "webhook certs",
    "disable": "webhook disable",
    "enable": "webhook enable",
    "exceptions": "policy exceptions",
    "export": "generate map",
    "export map": "generate map",
    "guard": "generate guard",
    "mutate": "preview",
    "policies": "policy list",
    "run preview": "preview -o pods",
    "schema": "generate schema",
    "simulate": "run simulate",
    "sources": "policy sources",
}
# What users of kubectl, Helm and linters type.
_MEANT: Final[dict[str, str]] = {
    "apply": "`kubectl apply -f FILE` creates policies and Runs, `fairlead install` Fairlead, and "
    "`fairlead preview -f FILE` shows what would become of a file",
    "create": "`fairlead run create` creates a Run; `kubectl apply -f FILE` creates policies and "
    "exceptions",
    "delete": "`fairlead run delete` deletes Runs; `kubectl delete` deletes policies and pods",
    "describe": "`fairlead explain TYPE NAME` explains a pod's placement, and `fairlead run status "
    "NAME` shows a Run",
    "get": "`fairlead policy list`, `fairlead run list` and `fairlead pods` list what there is",
    "lint": "`fairlead check PATH` validates policies",
    "list": "`fairlead policy list`, `fairlead run list` and `fairlead pods` list what there is",
    "logs": "`fairlead run logs NAME` prints the logs of a Run",
    "plan": "`fairlead diff OLD NEW` shows what a change of policies does, and `fairlead preview` "
    "what policies change in pods",
    "render": "`fairlead generate manifests` prints what an installation applies, and `fairlead "
    "run render` a Run for another engine",
    "status": "`fairlead doctor` finds problems, `fairlead webhook status` shows whether pods are "
    "sent to the webhook, and `fairlead run status NAME` shows a Run",
    "template": "`fairlead generate manifests` prints what an installation applies",
    "top": "`fairlead run top` shows what active Runs have and wait for",
    "upgrade": "`fairlead install` upgrades, too: run it again with the new image",
    "validate": "`fairlead check PATH` validates policies",
    "run apply": "`kubectl apply -f FILE`, or `fairlead run create -f FILE`",
    "run describe": "`fairlead run status NAME`",
    "run get": "`fairlead run list`, or `fairlead run status NAME`",
    "run ls": "`fairlead run list`",
    "run ps": "`fairlead run list`",
    "run rm": "`fairlead run delete NAME`",
    "run stop": "`fairlead run suspend NAME`, or `fairlead run delete NAME`",
    "run edit": "`kubectl edit run NAME`",
    "run update": "`kubectl edit run NAME`, or `kubectl apply -f FILE`",
    "policy apply": "`kubectl apply -f FILE`; `fairlead check FILE` validates it before",
    "policy create": "`kubectl apply -f FILE`; `fairlead check FILE` validates it before",
    "policy delete": "`kubectl delete placementpolicy NAME`",
    "policy edit": "`kubectl edit placementpolicy NAME`",
    "policy describe": "`fairlead policy get NAME`",
    "policy ls": "`fairlead policy list`",
}


def answer_for(*texts: str) -> str | None:
    """Return what to say of the first of these command lines that is known; None if none is."""
    for text in texts:
        if text in RENAMED:
            return f"`{text}` is now `{RENAMED[text]}`."
        if text in _MEANT:
            return f"No such command {text!r}: {_MEANT[text]}."
    return None
