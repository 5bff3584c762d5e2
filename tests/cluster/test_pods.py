"""`fairlead pods` beside the real API server, its controllers and its scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.accounts import account, grant
from tests.cluster.manifests import pod, policy_text, template, workload
from tests.cluster.spaces import LOOK, Space
from tests.cluster.webhooks import serving
from tests.eventually import eventually
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.webhook_fixtures"]

POOL = "cloud.google.com/gke-nodepool"
GPU = {"key": "nvidia.com/gpu", "operator": "Exists"}
NOW = policy_text(
    "pool", "match: {roles: [worker]}", f"defaults: {{nodeSelector: {{{POOL}: gpu}}}}"
)
LATER = NOW.replace(": gpu", ": on-demand")
WORKER = {names.RUN: "r", names.ROLE: "worker"}
# Claims that the policy set the node pool, which the spec does not have.
FORGED = json.dumps(
    {"policies": {"pool": [f"nodeSelector[{POOL}]"]}, "set": "0" * 12, "version": 1}
)


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The policies as they are since."""
    file = tmp_path_factory.mktemp("later") / "later.yaml"
    file.write_text(LATER)
    return file


@pytest.fixture(scope="module")
def now(
    control_plane: ControlPlane, module_space: Space, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The policies that the webhook serves; pods `early` and `forged` are older than it."""
    space = module_space
    space.create(pod("early", labels=WORKER, nodeSelector={POOL: "on-demand"}))
    space.create(pod("forged", labels=WORKER, annotations={names.PLACEMENT: FORGED}))
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(NOW)
    with serving(control_plane, folder, name="fairlead-pods", namespaces=[space.name]):
        space.create(
            workload("Deployment", "web", template(labels=WORKER, tolerations=[GPU]), replicas=2)
        )
        space.create(pod("typo", labels={names.RUN: "r"}, nodeSelector={POOL: "typo"}))
        space.create(pod("foreign", labels={"app": "x"}, nodeSelector={POOL: "typo"}))
        eventually("all pods exist", lambda: len(space.pods()) == 6, period=LOOK)
        for name in bound(space, 4):
            assert name in ("early", "forged") or name.startswith("web-")
        yield folder


def bound(space: Space, count: int) -> list[str]:
    """Wait until so many pods have a node, and return their names."""
    found: list[str] = []

    def enough() -> bool:
        found[:] = [each["metadata"]["name"] for each in space.pods() if "nodeName" in each["spec"]]
        return len(found) >= count

    eventually(f"{count} pods are bound", enough, explain=space.pods, period=LOOK)
    return found


def found(space: Space, *arguments: str | Path) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and of each pod the finding and its owner's kind and name."""
    done = space.ask("pods", *arguments, "-o", "json")
    answer: Any = json.loads(done.stdout)
    return done.exit_code, {
        each["name"].rpartition("-")[0] or each["name"]: (
            each["finding"],
            f"{each['owner']['kind']}/{each['owner']['name']}",
        )
        for each in answer["pods"]
        if each["namespace"] == space.name
    }


def test_a_pod_that_today_s_policies_place_otherwise_has_its_top_owner(
    module_space: Space, now: Path, later: Path
) -> None:
    """Not its ReplicaSet; under the policies that placed it, it is no finding."""
    replicas = [each["metadata"]["name"] for each in module_space.items("pods", "app=app")]
    code, pods = found(module_space, "--otherwise", "--policies", later)
    assert code == 1
    web = {name: pods.pop(name) for name in list(pods) if name.startswith("web")}
    assert set(web.values()) == {("otherwise", "Deployment/web")}
    done = module_space.ask("pods", "--otherwise", "--policies", later, "-o", "owners")
    assert f"{module_space.name} deployment.apps/web" in done.stdout.splitlines()
    done = module_space.ask("pods", "--otherwise", "--policies", later)
    text = " ".join(done.stdout.split())
    mentions(text, "deployment.apps/web", *replicas, f"nodeSelector[{POOL}]", "gpu", "on-demand")
    selected = (*("-l", "app=app"), *("--otherwise", "--policies", later))
    assert set(found(module_space, *selected)[1].values()) == {("otherwise", "Deployment/web")}
    wrong = module_space.ask("pods", "-l", "a in b", "--policies", later)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    mentions(wrong.stderr, "unable to parse")
    _, before = found(module_space, "--otherwise", "--policies", now)
    assert not any(name.startswith("web") for name in before)


def test_a_forged_stamp_hides_no_difference(module_space: Space, now: Path) -> None:
    """The result is compared with the pod's spec, not with what its stamp claims."""
    _, pods = found(module_space, "--otherwise", "--policies", now)
    assert pods["forged"] == ("otherwise", "Pod/forged")


def test_a_pod_of_a_run_without_a_stamp_is_listed_with_the_reason(
    module_space: Space, now: Path
) -> None:
    """A pod without a run is not, and neither is one whose stamp is forged."""
    code, pods = found(module_space, "--unplaced", "--policies", now)
    assert (code, pods) == (1, {"early": ("unplaced", "Pod/early")})
    mentions(module_space.ask("pods", "--unplaced", "--policies", now).stdout, "early", "1 without")


def test_a_pod_without_a_node_is_listed_as_the_scheduler_says(
    module_space: Space, now: Path
) -> None:
    """The scheduler has bound all other pods of runs; a pod without a run is not judged."""
    unbound = {
        each["metadata"]["name"] for each in module_space.pods() if "nodeName" not in each["spec"]
    }
    assert unbound == {"typo", "foreign"}
    code, pods = found(module_space, "--no-node", "--policies", now)
    assert (code, pods) == (1, {"typo": ("no-node", "Pod/typo")})
    text = " ".join(module_space.ask("pods", "--no-node", "--policies", now).stdout.split())
    mentions(text, f"{POOL}=typo matches none", "1 that no node admits")


def test_nothing_found_and_everything_read_is_exit_code_0(
    module_space: Space, now: Path, namespace: str
) -> None:
    """In a namespace without pods; a namespace that does not exist is unknown."""
    done = module_space.ask("pods", "--policies", now, "-n", namespace)
    assert done.exit_code == 0, done.output
    counts = ("0 would be placed otherwise", "0 without a stamp", "0 that no node admits")
    mentions(done.stdout, "0 live pods", *counts)
    missing = module_space.ask("pods", "--policies", now, "-n", "no-such-namespace")
    assert missing.exit_code == 2
    mentions(missing.stderr, "no-such-namespace")


def test_what_may_not_be_read_is_unknown_and_not_well(
    module_space: Space, now: Path, tmp_path: Path
) -> None:
    """A user who may list pods only: exit code 2 without a finding, and stderr names each right."""
    space = module_space
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    grant(space.kubectl, "reader", "reader", pods)
    config = account(space.kubectl, "reader", tmp_path / "kubeconfig")
    done = space.ask("pods", "--otherwise", "--no-node", "--policies", now, kubeconfig=config)
    mentions(done.stderr, "list nodes", "list ReplicaSet objects", "namespaces")
    mentions(done.stdout, "cannot be judged" if done.exit_code == 2 else "forged")
    assert "that no node admits" not in done.stdout
    mentions(done.stdout, "unknown how many no node admits")
    every = space.ask("pods", "-A", "--policies", now, kubeconfig=config)
    assert every.exit_code == 2
    mentions(every.stderr, "-n NAME")
