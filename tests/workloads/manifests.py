"""Objects that make pods, for tests."""

from __future__ import annotations

from typing import Any

from tests.fast_yaml import load_yaml
from webhook.workloads.object import Object
from webhook.workloads.template import PodTemplate
from webhook.workloads.template_search import pod_templates

Json = dict[str, Any]
POD_SPEC = {"containers": [{"name": "main", "image": "i"}]}


def template(**labels: str) -> Json:
    """A pod template with these labels, of which _ stands for - in a key."""
    named = {key.replace("_", "-"): value for key, value in labels.items()}
    return {"metadata": {"labels": named}, "spec": POD_SPEC} if named else {"spec": POD_SPEC}


def made_by(api_version: str, kind: str, spec: Json, **metadata: Any) -> Object:
    """An object by the name of mnist."""
    about = {"name": "mnist", **metadata}
    return Object(
        "f.yaml", {"apiVersion": api_version, "kind": kind, "metadata": about, "spec": spec}
    )


def templates(api_version: str, kind: str, spec: Json, **metadata: Any) -> list[PodTemplate]:
    """The templates of such an object."""
    return pod_templates(made_by(api_version, kind, spec, **metadata))


def written(text: str) -> list[PodTemplate]:
    """The templates of an object that is written out."""
    return pod_templates(Object("f.yaml", load_yaml(text)))


def labels(found: PodTemplate, index: int = 0) -> Json:
    """The labels of one replica's pod."""
    result: Json = found.pod(index)["metadata"]["labels"]
    return result
