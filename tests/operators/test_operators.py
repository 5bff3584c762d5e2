"""`fairlead sandbox up --operator`: each operator of the table, beside Fairlead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.cluster.manifests import Json
from tests.eventually import eventually
from tests.objects import an_object
from tests.operators.jobs import EXAMPLES, SPARK_APPLICATION, Example
from tests.wording import line_with, mentions
from webhook import names
from webhook.cli import fairlead
from webhook.frameworks.table import FRAMEWORKS
from webhook.sandbox.cache_folder import cache_directory
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator
from webhook.sandbox.operators.table import operators
from webhook.sandbox.processes import alive

pytestmark = pytest.mark.usefixtures("binaries")

NAME = "tests-of-operators"
NAMESPACE = "research"
POOL = {"cloud.google.com/gke-nodepool": "on-demand"}
# A policy for each fact of a pod's identity, so that a stamp names the facts.
MATCHES: Mapping[str, Json] = {
    "to-a-pool": {},
    "leader": {"coordinator": True},
    **{f"role-{role}": {"roles": [role]} for role in sorted(names.ROLES)},
    **{f"framework-{name}": {"frameworks": [name]} for name in sorted(FRAMEWORKS)},
    **{f"kind-{kind}": {"kinds": [kind]} for kind in sorted(names.KINDS)},
    **{f"index-{index}": {"replicaIndexes": [index]} for index in range(3)},
}
POLICIES = "---\n".join(
    json.dumps(
        an_object(
            names.API_VERSION,
            names.POLICY_KIND,
            name,
            {"match": match, "overrides": {"annotations": {f"test/{name}": "yes"}}}
            if match
            else {"overrides": {"nodeSelector": POOL}},
        )
    )
    + "\n"
    for name, match in MATCHES.items()
)
FOLDER = cache_directory(os.environ) / "sandboxes" / NAME


def sandbox(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with the cache that holds the operators."""
    program = "from webhook.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "sandbox", *arguments, "--name", NAME],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


@dataclass(frozen=True)
class Box:
    """A sandbox with operators: how to start it, and kubectl in its namespace."""

    policies: Path
    kubectl: Kubectl

    def up(self, *wanted: str) -> subprocess.CompletedProcess[str]:
        """`sandbox up` with the policies and these operators."""
        options = [option for name in wanted for option in ("--operator", name)]
        return sandbox("up", "--policies", str(self.policies), *options)

    def pods(self) -> list[Json]:
        """The pods of the namespace that are there."""
        found: list[Json] = self.kubectl.json("get", "pods")["items"]
        return found


@pytest.fixture
def box(
    tmp_path: Path, kubectl_path: Path, operators_built: Mapping[str, BuiltOperator]
) -> Iterator[Box]:
    """It is taken away at the end, even if the test fails."""
    assert operators_built
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "policy.yaml").write_text(POLICIES)
    yield Box(policies, Kubectl(kubectl_path, FOLDER / "kubeconfig", NAMESPACE))
    sandbox("down")


def status() -> dict[str, Any]:
    """What `status -o json` prints."""
    document: dict[str, Any] = json.loads(sandbox("status", "-o", "json").stdout)
    return document


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_pods_of_an_operator_are_placed(box: Box, example: Example) -> None:
    """From `up` to `down`: it makes the pods of its smallest object, and leaves nothing.

    Each pod has the identity, and so the policies, that `fairlead explain` shows beforehand.
    """
    before = left_in_tmp()
    up = box.up(*example.operators)
    assert up.returncode == 0, up.stderr
    there = example.there or example.operators
    shown = status()
    assert shown["state"] == "running"
    assert shown["operators"] == list(there)
    components = {each["name"]: each for each in shown["components"]}
    for name in there:
        assert components[name]["version"] in sandbox("status").stdout
        assert components[name]["running"]
    assert left_in_tmp() == before

    space = {"metadata": {"name": NAMESPACE, "labels": dict(example.namespace)}}
    box.kubectl.create({"apiVersion": "v1", "kind": "Namespace", **space})
    box.kubectl.create(*example.before, example.manifest)
    eventually(
        "every pod is there",
        lambda: len(box.pods()) >= example.pods,
        explain=lambda: box.kubectl("get", "events"),
    )
    found = box.pods()
    assert len(found) == example.pods
    for pod in found:
        assert pod["spec"]["nodeSelector"].items() >= POOL.items()
    stamps = [json.loads(each["metadata"]["annotations"][names.PLACEMENT]) for each in found]
    placed = Counter(tuple(sorted(stamp["policies"])) for stamp in stamps)
    assert placed == foretold(box, example)

    down = sandbox("down")
    assert down.returncode == 0, down.stderr
    assert not any(alive(each["pid"], FOLDER) for each in components.values())
    assert not FOLDER.exists()
    assert left_in_tmp() == before


def foretold(box: Box, example: Example) -> Counter[tuple[str, ...]]:
    """How many pods are placed by which policies, as `fairlead explain` says of the object alone.

    A runtime to which the object refers is given beside it.
    """
    space = an_object("v1", "Namespace", {"name": NAMESPACE, "labels": dict(example.namespace)})
    items = [space, example.manifest]
    if reference := example.manifest["spec"].get("runtimeRef"):
        items.append(box.kubectl.json("get", "clustertrainingruntime", reference["name"]))
    file = box.policies.parent / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    options = ["-f", str(file), "--policies", str(box.policies), "-n", NAMESPACE, "-o", "json"]
    done = CliRunner().invoke(fairlead, ["explain", *options])
    assert done.exit_code == 0, done.output
    counts: Counter[tuple[str, ...]] = Counter()
    kind, name = example.manifest["kind"], example.manifest["metadata"]["name"]
    for group in json.loads(done.stdout)["pods"]:
        if group["object"] != f"{kind}/{name}":
            continue
        (stamp,) = stamps_in(group["patch"])
        counts[tuple(sorted(json.loads(stamp)["policies"]))] += group["count"]
    return counts


def stamps_in(patch: Iterable[Json]) -> Iterator[str]:
    """The stamps that a JSON Patch adds, alone or with all annotations."""
    for operation in patch:
        if operation["path"] == "/metadata/annotations":
            yield operation["value"][names.PLACEMENT]
        elif operation["path"] == f"/metadata/annotations/{names.PLACEMENT.replace('/', '~1')}":
            yield operation["value"]


def left_in_tmp() -> bool:
    """Whether something is where operators look for the sign of a certificate."""
    signs = [Path(each.asks_for) for each in operators().values() if each.asks_for]
    return any(sign.parents[1].exists() for sign in signs)


def test_all_operators_share_a_sandbox(box: Box) -> None:
    """Two own one definition: the MPI operator's is there, the other one leaves MPIJobs alone."""
    up = box.up(*operators())
    assert up.returncode == 0, up.stderr
    assert set(status()["operators"]) == set(operators())
    box.kubectl("create", "namespace", NAMESPACE)
    served = ("get", "--raw", "/openapi/v2")
    eventually("kubectl can validate", lambda: box.kubectl.run(*served).returncode == 0)
    by_kind = {each.manifest["kind"]: each for each in EXAMPLES}
    mpi, pytorch = by_kind["MPIJob"], by_kind["PyTorchJob"]
    box.kubectl.create({**mpi.manifest, "metadata": {"name": "mpi"}}, pytorch.manifest)
    wanted = mpi.pods + pytorch.pods
    eventually("the pods of both are there", pods_are(box, wanted))


def pods_are(box: Box, wanted: int) -> Callable[[], bool]:
    """Whether so many pods are there."""
    return lambda: len(box.pods()) == wanted


def test_spark_s_operator_reports_that_there_is_no_spark(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pods are made by spark-submit, which the sandbox does not bring."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert box.up("spark-operator").returncode == 0
    box.kubectl("create", "namespace", NAMESPACE)
    box.kubectl.create(SPARK_APPLICATION)

    def state() -> str:
        found = box.kubectl.json("get", "sparkapplication", "train")
        return str(found.get("status", {}).get("applicationState", {}))

    eventually("the failure is reported", lambda: "FAILED" in state(), explain=state)
    mentions(state(), "SPARK_HOME")


def test_a_running_sandbox_says_which_operator_it_lacks(box: Box) -> None:
    """It is not changed; asked for what it has, `up` is content; a dead operator is seen."""
    assert box.up("jobset").returncode == 0
    again = box.up("jobset")
    assert again.returncode == 0, again.stderr
    more = box.up("trainer")
    assert more.returncode == 1
    line_with(more.stderr, "runs already", "without operator trainer", "sandbox down")

    pids = {each["name"]: each["pid"] for each in status()["components"]}
    os.kill(pids["jobset"], 9)
    eventually("it is gone", lambda: not alive(pids["jobset"], FOLDER))
    shown = sandbox("status")
    assert shown.returncode == 1
    mentions(line_with(shown.stdout, "jobset", "v0.10.1"), "gone")
