"""Commands of concept pages, and of the chain of a pod, print what the pages show.

Their files are on the pages and on the first page; their cluster is a fake.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from click.testing import CliRunner

from tests.cli.fake_clusters import POLICIES, paths_of
from tests.cli.run.scripted_cluster import Cluster, served
from tests.fast_yaml import load_all_yaml
from tests.kube.fake_api import answering
from webhook.cli import fairlead
from webhook.decision.arrival import Arrival
from webhook.decision.arrival import Cluster as World
from webhook.decision.engine import decide
from webhook.placement.capacity import MODES
from webhook.placement.placement_setting import PARTS
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet
from webhook.run.model.status import PHASES
from webhook.times import to_second

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
    ROOT / "docs" / "guides" / "when-something-is-wrong.md",
]
FILE = re.compile(r"```ya?ml\n# (\S+\.yaml)\n(.*?)```", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ fairlead (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
RUN = {"fairlead.dev/run": "mnist"}
WORKER = {**RUN, "fairlead.dev/role": "worker"}
ZONE = "topology.kubernetes.io/zone"
METRICS = "/api/v1/namespaces/fairlead-system/pods/w0:8080/proxy/metrics"


KUBEFLOW = {
    f"training.kubeflow.org/{key}": value
    for key, value in {
        "job-name": "mnist",
        "operator-name": "pytorchjob-controller",
        "replica-type": "worker",
        "replica-index": "0",
    }.items()
}
UNSCHEDULABLE = (
    "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. preemption: "
    "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)
# The page shows an age that stays the same for an hour.
CREATED = to_second(datetime.now(UTC) - timedelta(days=4, hours=2, seconds=5))
VARIES = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def pod(name: str, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    """A pod in namespace research; without a node it waits for one."""
    waits: dict[str, Any] = {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": UNSCHEDULABLE,
                "lastTransitionTime": CREATED,
            }
        ],
    }
    runs = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "namespace": "research", "uid": name, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "creationTimestamp": CREATED},
        "spec": {"containers": [{"name": "main"}], **spec},
        "status": runs if "nodeName" in spec else waits,
    }


def as_created(raw: dict[str, Any], policies: PolicySet) -> dict[str, Any]:
    """The pod with the webhook's patch."""
    decision = decide(Arrival(raw, "research", {}), policies, World())
    created: dict[str, Any] = jsonpatch.apply_patch(raw, list(decision.patch))
    return created


def cluster(files: dict[str, str]) -> Cluster:
    """The policies of the first page, two nodes, and pods that stop at one link of the chain each.

    The webhook is sent only the pods with Fairlead's own mark, as without `--source`.
    """
    text = files["mine/spot.yaml"]
    policies = load({"spot.yaml": text.encode()}).policies
    documents = list(load_all_yaml(text))
    of_kind = {
        kind: [each for each in documents if each["kind"] == kind]
        for kind in ("PlacementPolicy", "CapacityClass")
    }
    worker = pod("mnist-worker-0", WORKER, nodeSelector={ZONE: "europe-west4-b"})
    paths = paths_of(
        {
            POLICIES: of_kind["PlacementPolicy"],
            POLICIES.replace("placementpolicies", "capacityclasses"): of_kind["CapacityClass"],
            "/api/v1/namespaces": [{"metadata": {"name": "research"}}],
            "/api/v1/nodes": next(iter(load_all_yaml(files["nodes.yaml"])))["items"],
            "/api/v1/namespaces/research/pods": [
                pod("plain", {"app": "mnist"}, nodeName="steady-1"),
                pod("kubeflow", KUBEFLOW, nodeName="steady-1"),
                as_created(pod("mnist-ps-0", {**RUN, "fairlead.dev/role": "ps"}), policies),
                as_created(worker, policies),
            ],
            METRICS: f'fairlead_policy_set_info{{hash="{policies.hash}"}} 1',
        }
    )
    return Cluster(answers=dict.fromkeys(paths, answering(paths)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the letter, but for the time and for what is said on stderr."""
    text = page.read_text()
    files = dict(FILE.findall((ROOT / "README.md").read_text() + text))
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    with served(cluster(files), tmp_path) if "nodes.yaml" in files else nullcontext():
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        for line, shown in COMMAND.findall("".join(CONSOLE.findall(text))):
            result = CliRunner().invoke(fairlead, shlex.split(line))
            assert VARIES.sub("", result.stdout) == VARIES.sub("", shown), line


@pytest.mark.parametrize(
    ("picture", "words"),
    [("capacity-modes", MODES), ("phases-of-a-run", PHASES), ("precedence", PARTS)],
)
def test_a_picture_names_all_that_it_is_about(picture: str, words: Iterable[str]) -> None:
    """In its boxes, and in its title for those who do not see it."""
    text = (ROOT / "docs" / "images" / f"{picture}.svg").read_text()
    title, _, drawn = text.partition("</title>")
    assert [word for word in words if word not in title or f">{word}<" not in drawn] == []
