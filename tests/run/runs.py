"""Runs for tests, written short."""

from __future__ import annotations

from typing import Any

from tests.objects import an_object
from webhook.run.model import Run

Json = dict[str, Any]
UID = "7d5e0d4e-2f1c-4b8e-9a51-5c0f6f1f3f10"


def a_run(name: str, spec: Json, *, namespace: str = "research", uid: str = UID) -> Run:
    """A Run as the API server would give it."""
    return Run.model_validate(
        an_object(
            "fairlead.dev/v1alpha1", "Run", {"name": name, "namespace": namespace, "uid": uid}, spec
        )
    )


def containers(*names: str) -> list[Json]:
    return [{"name": name, "image": "train:1"} for name in names]


def spec_of(containers: list[Json], **more: Any) -> Json:
    """A pod template with these containers, and more fields of its spec."""
    return {"spec": {"containers": containers, **more}}
