"""The pod schema in the package is that of a real API server, and its faults are refused there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.pod_schema.templates import EVERYTHING, WRONG
from tools.pod_schema import compact
from webhook.pod_schema.fields import schema

if TYPE_CHECKING:
    from tests.cluster.rooms import Json
    from webhook.sandbox.control_plane import ControlPlane
    from webhook.sandbox.kubectl import Kubectl


def test_the_schema_is_the_api_servers(control_plane: ControlPlane) -> None:
    """Else `kubectl get --raw /openapi/v3/api/v1 | python -m tools.pod_schema` of a sandbox."""
    served = compact(control_plane.api.get("/openapi/v3/api/v1"))
    assert (schema().version, schema().types) == (served["kubernetes"], served["types"])


def created(kubectl: Kubectl, template: Json) -> tuple[int, str]:
    """What kubectl says to the creation of a pod of this template, as a dry run."""
    metadata = {"name": "p", **template.get("metadata", {})}
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}
    done = kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    return done.returncode, done.stderr


@pytest.mark.parametrize(("template", "path", "_facts"), WRONG, ids=[each[1] for each in WRONG])
def test_what_is_called_an_error_is_refused(
    cluster_kubectl: Kubectl, namespace: str, template: Json, path: str, _facts: tuple[str, ...]
) -> None:
    """So nothing is an error here that is none there."""
    code, said = created(cluster_kubectl.within(namespace), template)
    assert code == 1, f"{path} is taken"
    assert said


def test_a_template_without_a_fault_is_taken(cluster_kubectl: Kubectl, namespace: str) -> None:
    """With every field that is tried above, as it should be."""
    code, said = created(cluster_kubectl.within(namespace), EVERYTHING)
    assert (code, said) == (0, "")
