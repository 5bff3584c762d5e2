"""What both programs tell in a whole run: logs, metrics, health. None of it is anybody's secret."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.accounts import account
from tests.cluster.live_runs import CONTAINER, SOON, create_run
from tests.cluster.manifests import Json, pod, policy_text
from tests.cluster.spaces import Space
from tests.control_planes import clear_namespace
from tests.fast_yaml import load_yaml
from tests.server.serving import get
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_controller, start_webhook, stop_webhook
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.run_fixtures"]

ACCOUNT = "talker"
# In a variable, an argument, an annotation: what authors write in spite of all advice.
TOLD = "told-in-a-template-8f3a"
POLICIES = policy_text("arch", "requirements: {nodeSelector: {kubernetes.io/arch: amd64}}")


@dataclass(frozen=True)
class Said:
    """Everything that the two programs said, and what must not be in it, by what it is."""

    logs: str
    plain_ports: str
    secrets: dict[str, str]
    names: tuple[str, ...]


@pytest.fixture(scope="module")
def said(
    run_api: ControlPlane, cluster_kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Said]:
    """A run of MPI from beginning to end, a rejected pod and a garbled review, at level debug."""
    plane = run_api
    name = "nothing-secret-is-said"
    plane.create_namespace(name)
    space = Space(plane, cluster_kubectl.within(name), name)
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(POLICIES)
    kubeconfig, token = administrator(space, tmp_path_factory.mktemp("account"))
    debug = ("--log-level", "debug")
    webhook = start_webhook(plane, folder, name="talking-webhook", namespaces=[name], options=debug)
    controller = start_controller(
        plane,
        name="talking-controller",
        kubeconfig=kubeconfig,
        options=("--namespace", name, "--certificates", *SOON, *debug),
    )
    try:
        container = {
            **CONTAINER,
            "env": [{"name": "PASSWORD", "value": TOLD}],
            "args": ["--password", TOLD],
        }
        template: Json = {
            "metadata": {"annotations": {"note": TOLD}},
            "spec": {"containers": [container]},
        }
        roles: Json = {"launcher": {}, "worker": {"count": 2}}
        live = create_run(
            space, "quicksilver-run", framework="mpi", replicas=roles, template=template
        )
        live.until_running("launcher-0", "worker-0", "worker-1")
        live.ends("worker-1", 1)
        live.until("it is replaced", lambda: live.role("worker").get("restarts") == 1)
        live.until_running("launcher-0", "worker-0", "worker-1")
        refused = pod(
            "quicksilver-pod", annotations={"note": TOLD}, nodeSelector={names.OS_LABEL: "linux"}
        )
        refused["spec"]["nodeSelector"]["kubernetes.io/arch"] = "arm64"
        assert space.kubectl.run("create", "-f", "-", stdin=json.dumps(refused)).returncode == 1
        live.ends("launcher-0", 0)
        live.until_phase("Succeeded")
        live.until("keys are made", lambda: names.SERVING_SECRET in secrets(space))
        kept = secrets(space)
        (ssh,) = (each for each in kept.values() if "ssh-privatekey" in each)
        ports = [int(webhook.health_url.rpartition(":")[2]), controller.health_port]
        plain = "\n".join(
            get(port, path)[1].decode()
            for port in ports
            for path in ("/metrics", "/readyz", "/livez", "/", "/debug/pprof", "/../etc/passwd")
        )
        logs = "".join(
            (plane.layout.directory / "logs" / f"{program}.log").read_text()
            for program in ("talking-webhook", "talking-controller")
        )
        keys = [ssh["ssh-privatekey"], kept[names.SERVING_SECRET]["tls.key"]]
        authority = kept[names.AUTHORITY_SECRET].values()
        keys += [each for each in authority if b"PRIVATE KEY" in base64.b64decode(each)]
        material = {"the token of the controller": token, "what a template says": TOLD}
        for at, key in enumerate(keys):
            lines = base64.b64decode(key).decode().splitlines()
            material[f"key {at}, as a Secret has it"] = key[60:120]
            # The last line may be so short that it stands anywhere.
            long = [line for line in lines[1:-1] if len(line) >= 16]
            material |= {f"key {at}, line {n}": line for n, line in enumerate(long, 1)}
            assert long
        assert len(keys) == 3
        yield Said(logs, plain, material, ("quicksilver", "worker-1", name))
    finally:
        stop_webhook(plane, webhook)
        plane.stop_component(controller.name)
        space.kubectl("delete", "clusterrolebinding", ACCOUNT)
        clear_namespace(plane, name)


def secrets(space: Space) -> dict[str, dict[str, str]]:
    """What the space's Secrets hold, in base64."""
    items = space.items("secrets")
    return {each["metadata"]["name"]: each.get("data", {}) for each in items}


def administrator(space: Space, folder: Path) -> tuple[Path, str]:
    """A kubeconfig with a service account's token, and the token."""
    kubeconfig = account(space.kubectl, ACCOUNT, folder / "kubeconfig")
    space.kubectl(
        *("create", "clusterrolebinding", ACCOUNT, "--clusterrole=cluster-admin"),
        f"--serviceaccount={space.name}:{ACCOUNT}",
    )
    token: str = load_yaml(kubeconfig.read_text())["users"][0]["user"]["token"]
    return kubeconfig, token


def test_no_log_has_a_key_a_token_or_a_template(said: Said) -> None:
    """At the most talkative level, errors and rejections included."""
    assert said.logs.count("\n") > 5
    assert "quicksilver" in said.logs
    for what, text in said.secrets.items():
        assert text not in said.logs, what
    assert not re.search(r"PRIVATE KEY|BEGIN CERTIFICATE|[Bb]earer |[Aa]uthorization: ", said.logs)
    # A token, whoever's: three parts of base64, of which the first two are JSON.
    assert not re.search(r"eyJ[\w-]{10,}\.eyJ", said.logs)


def test_the_plain_ports_reveal_no_user(said: Said) -> None:
    """Neither names of pods, runs and namespaces, nor anything that they hold."""
    for text in (*said.secrets.values(), *said.names):
        assert text not in said.plain_ports
    labels = set(re.findall(r"[{,](\w+)=\"", said.plain_ports))
    assert labels.isdisjoint({"pod", "namespace", "run", "name", "user", "uid", "node"})
