"""Guides and concepts are true: their YAML is valid, tests pass, paths of policies exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from click.testing import CliRunner

from tests.fast_yaml import load_all_yaml
from tests.test_continuous_integration import ACTION, HOOKS
from webhook.cli import fairlead
from webhook.cli.test import command as fairlead_test
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.engine import decide
from webhook.identity import identify
from webhook.names import API_VERSION, ATTEMPT_VARIABLE
from webhook.policy.load import load
from webhook.policy_tests.load_tests import read
from webhook.policy_tests.runner import run_tests
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.model import Run
from webhook.run.plan import plan
from webhook.simulation.scenario import parse as parse_scenario

ROOT = Path(__file__).parents[1]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
CONCEPTS = sorted((ROOT / "docs" / "concepts").glob("*.md"))
PAGES = [*GUIDES, *CONCEPTS, ROOT / "policies" / "README.md"]
# Where a block speaks of classes that it does not describe.
CLASSES = (ROOT / "policies" / "capacity" / "gke-spot.yaml").read_text()
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# tests/helm/test_values.py has the values and the kustomization.
FOREIGN = tuple(
    f"# {name}\n"
    for name in (
        *("Polyaxon", "MLRun", "Kubeflow", "Kyverno", "Gatekeeper", "Argo CD", "Flux"),
        *(
            "Helm values",
            "mine/kustomization.yaml",
            "namespaces.yaml",
            "In mine/kustomization.yaml",
        ),
        *(
            "mine/installation/kustomization.yaml",
            "mine/kustomization.yaml, in place of the one above",
        ),
    )
)


class Block(NamedTuple):
    """A fenced block: its language, its text, and the last block of policies before it."""

    language: str
    text: str
    policies: str


def kinds(text: str) -> set[str]:
    return {str(document.get("kind")) for document in load_all_yaml(text)}


def blocks(page: Path) -> Iterator[Block]:
    policies = ""
    for language, text in FENCED.findall(page.read_text()):
        if language == "yaml" and "PlacementPolicy" in kinds(text):
            policies = text if "CapacityClass" in kinds(text) else f"{text}---\n{CLASSES}"
        yield Block(language, text, policies)


YAML = {
    f"{page.stem}-{number}": block
    for page in PAGES
    for number, block in enumerate(blocks(page), start=1)
    if block.language == "yaml"
}


def _check_pod(pod: Any) -> None:
    """The pod belongs to a run, and the engine reads it."""
    metadata = pod["metadata"]
    assert identify(metadata.get("labels", {}), metadata.get("annotations", {}), {})
    policies = load({"classes.yaml": CLASSES.encode()}).policies
    assert decide(Arrival(pod, "default", {}), policies, Cluster()).allowed


def _check_run(document: Any) -> None:
    """The Run is one, and pods can be made of it."""
    run = Run.model_validate(document, by_alias=True, by_name=False)
    if run.spec.delegated:
        assert render_run(run, BACKENDS[run.spec.backend])
    else:
        assert plan(run).pod(next(iter(run.spec.roles)), 0, 0)


def _check_continuous_integration(text: str) -> None:
    """The inputs of our action and the hooks are there."""
    for document in load_all_yaml(text):
        for step in document.get("jobs", {}).get("policies", {}).get("steps", ()):
            if "fairlead" in step["uses"]:
                assert step["with"].keys() <= ACTION["inputs"].keys()
        for repository in document.get("repos", ()):
            assert {each["id"] for each in repository["hooks"]} <= {each["id"] for each in HOOKS}


@pytest.mark.parametrize("block", YAML.values(), ids=YAML.keys())
def test_every_yaml_block_is_valid_and_every_test_in_it_passes(block: Block) -> None:
    """Policies load without a finding, tests pass over the policies before them."""
    if block.text.startswith(("jobs:", "repos:")):
        _check_continuous_integration(block.text)
        return
    if block.text.startswith(FOREIGN):
        assert list(load_all_yaml(block.text))
        return
    found = kinds(block.text)
    if block.text.startswith("# The class spot"):
        (more,) = load_all_yaml(block.text)
        spot, *_ = load_all_yaml(CLASSES)
        assert spot["metadata"]["name"] == "spot"
        text = orjson.dumps({**spot, "spec": spot["spec"] | more["spec"]})
        assert load({"block.yaml": text}).warnings == ()
    elif found == {"CapacityClass"}:
        assert load({"block.yaml": block.text.encode()}).warnings == ()
    elif found <= {
        *("PlacementPolicy", "NamespacedPlacementPolicy", "CapacityClass", "PlacementException")
    }:
        assert load({"block.yaml": block.policies.encode()}).warnings == ()
    elif found == {"PolicyTest"}:
        policies = load({"block.yaml": block.policies.encode()}).policies
        verdicts = [
            verdict
            for document in read("block.test.yaml", block.text.encode()).sound()
            for verdict in run_tests(document, policies)
        ]
        assert [(v.name, v.failures) for v in verdicts if not v.passed] == []
    elif found == {"RunSource"}:
        assert load({"block.yaml": block.text.encode()}).warnings == ()
    elif found == {"Scenario"}:
        assert parse_scenario("block.yaml", block.text.encode())
    elif found == {"Run"}:
        for run in load_all_yaml(block.text):
            _check_run(run)
    else:
        assert found == {"Pod"}
        for pod in load_all_yaml(block.text):
            _check_pod(pod)


def test_the_guide_to_policy_tests_shows_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first example as it stands, and with Prevent in the place of Constrain."""
    policies, test, output = list(blocks(ROOT / "docs" / "guides" / "policy-tests.md"))[:3]
    failure = next(
        block.text
        for block in blocks(ROOT / "docs" / "guides" / "policy-tests.md")
        if block.language == "text"
    )
    monkeypatch.chdir(tmp_path)
    for file, text in (
        ("capacity/gke-spot.yaml", CLASSES),
        ("workers/workers.yaml", policies.text),
        ("workers/workers.test.yaml", test.text),
    ):
        path = tmp_path / "policies" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    printed = CliRunner().invoke(fairlead_test, ["policies"]).stdout
    assert output.text == f"$ fairlead test policies/\n{printed}"
    changed = tmp_path / "policies" / "workers" / "workers.yaml"
    changed.write_text(policies.text.replace("Constrain", "Prevent"))
    assert CliRunner().invoke(fairlead_test, ["policies"]).stdout == failure


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_path_of_policies_leads_somewhere(page: Path) -> None:
    """From the root, also in code, or is a copy; tests/test_docs.py has links and commands."""
    for path in re.findall(
        r"policies/(?:capacity|stateful|mlrun|masters|non|defaults)[\w./-]*", page.read_text()
    ):
        # What the shell completes, and a sentence's full stop, are not of the path.
        found = path.rstrip("./")
        copied = (ROOT / "policies").rglob(Path(found).name) if found.endswith(".yaml") else ()
        assert any(ROOT.glob(f"{found}*")) or any(copied), path


@pytest.mark.parametrize(
    ("number", "newest"),
    [
        ("0", "None"),
        ("2", "checkpoints/1/0100.ckpt"),
        ("4", "checkpoints/3/0040.ckpt"),
        # An older controller does not set it.
        ("", "checkpoints/3/0040.ckpt"),
    ],
)
def test_the_program_that_is_safe_to_start_twice_reads_no_checkpoint_of_a_later_start(
    tmp_path: Path, number: str, newest: str
) -> None:
    """And writes where no other start does."""
    for path in ("1/0100.ckpt", "3/0040.ckpt"):
        kept = tmp_path / "checkpoints" / path
        kept.parent.mkdir(parents=True)
        kept.touch()
    [program] = [
        each.text
        for each in blocks(ROOT / "docs" / "guides" / "lost-nodes.md")
        if each.language == "python"
    ]
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={ATTEMPT_VARIABLE: number} if number else {},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"begin with {newest} and write to checkpoints/{number or 3}\n"


@pytest.mark.parametrize("page", ["part-on-spot", "fallback"])
def test_the_lines_of_a_preview_are_those_that_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, with the classes of the first page and a master and 11 workers."""
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    guides = ROOT / "docs" / "guides"
    for text in {
        next(blocks(guides / "part-on-spot.md")).text,
        *(each.text for each in blocks(guides / f"{page}.md") if each.language == "yaml"),
    }:
        Path(text.partition("\n")[0].removeprefix("# ")).write_text(text)
    template = {"spec": {"containers": [{"name": "main", "image": "registry.example/mnist:1"}]}}
    replicas = {"master": {"count": 1}, "worker": {"count": 11}}
    spec = {"framework": "pytorch", "replicas": replicas, "template": template}
    metadata = {"name": "mnist"}
    run = {"apiVersion": API_VERSION, "kind": "Run", "metadata": metadata, "spec": spec}
    Path("run.yaml").write_bytes(orjson.dumps(run))
    [command] = re.findall(
        r"^\$ fairlead (preview -o pods .*)$", (guides / f"{page}.md").read_text(), re.MULTILINE
    )
    shown = next(each.text for each in blocks(guides / f"{page}.md") if each.language == "text")
    printed = CliRunner().invoke(fairlead, shlex.split(command)).stdout.splitlines()
    places = [printed.index(line) for line in shown.splitlines()]
    assert places == sorted(places)
