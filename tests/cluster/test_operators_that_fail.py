"""An operator in the sandbox that does not become ready: what `sandbox up` reports of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.errors import SandboxError
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators import install
from webhook.sandbox.operators.build import BuiltOperator
from webhook.sandbox.operators.install import plan_installation, start_operator
from webhook.sandbox.operators.table import Operator, operators


def start(plane: ControlPlane, kubectl: Kubectl, folder: Path, script: str, **row: object) -> None:
    """Start a shell script as an operator, with the rights of the namespace's default account."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    manifests = folder / "manifests.json"
    manifests.write_text("[]")
    operator = Operator.model_validate(
        {
            "name": "broken",
            "summary": "fails",
            "kustomization": {"resources": []},
            "namespace": "default",
            "account": "default",
            "arguments": ["{folder}"],
            **row,
        }
    )
    installation = plan_installation(operator, BuiltOperator((program,), "v1", manifests))
    try:
        start_operator(plane, kubectl, installation)
    finally:
        plane.stop_component("broken")


def test_one_that_exits_shows_the_end_of_its_log(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, tmp_path: Path
) -> None:
    """At once, and not after the time that it has."""
    script, ports = "echo flag unknown >&2; exit 3", {"health": "any"}
    with pytest.raises(SandboxError, match=r"(?s)broken exited with code 3.*flag unknown"):
        start(control_plane, cluster_kubectl, tmp_path, script, ports=ports, health="/readyz")


def test_one_that_is_not_ready_in_time_shows_the_last_answer_and_its_log(
    control_plane: ControlPlane,
    cluster_kubectl: Kubectl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its definitions are missing here, so the API server does not know its objects."""
    monkeypatch.setattr(install, "_READY_TIMEOUT_SECONDS", 1)
    (probe,) = operators()["jobset"].probes
    wanted = r"(?s)in time: waited for operator broken: its webhooks\n.*404 to a JobSet.*waiting"
    with pytest.raises(SandboxError, match=wanted):
        start(control_plane, cluster_kubectl, tmp_path, "echo waiting; sleep 60", probes=[probe])


def test_the_sign_of_a_certificate_is_gone_when_the_start_is_over(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, tmp_path: Path
) -> None:
    """It is a file in /tmp, in folders of its own; that of a start that was killed is none."""
    sign = tmp_path / "hooks" / "certificates" / "tls.crt"
    sign.parent.mkdir(parents=True)
    sign.touch()
    secret = {"metadata": {"name": "broken-certificate"}, "stringData": {"tls.crt": "a"}}
    control_plane.api.create("/api/v1/namespaces/default/secrets", secret)
    script = f"until [ -e {sign} ]; do sleep 0.1; done; cat $1/k8s-webhook-server/*/tls.crt; exit 4"
    row: dict[str, object] = {"certificate": "broken-certificate", "asks_for": str(sign)}
    row |= {"ports": {"health": "any"}, "health": "/readyz"}
    with pytest.raises(SandboxError, match=r"(?s)code 4:.*\na$"):
        start(control_plane, cluster_kubectl, tmp_path, script, **row)
    assert not sign.parents[1].exists()
