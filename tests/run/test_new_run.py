"""A Run made from a few settings is one that runs, and has no field that nobody gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.wording import mentions
from webhook.errors import InvalidRun
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.run.effective_settings import effective_settings
from webhook.run.new_run import NewRun, checked, is_image, manifest
from webhook.run.plan import plan

OWN_COMMANDS = {name: each.commands for name, each in FRAMEWORKS.items() if each.commands}
IMAGE = "example.invalid/a:1"
ROOT = Path(__file__).parents[2]


def made(**settings: Any) -> dict[str, Any]:
    return manifest(NewRun("mnist", IMAGE, ("python", "train.py"), **settings))


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("framework", ["", *sorted(FRAMEWORKS.keys() - OWN_COMMANDS - {"spark"})])
def test_every_framework_gets_the_roles_that_it_needs(framework: str, workers: int) -> None:
    """So many workers, and one of each other role; only workers have GPUs."""
    run = checked(
        made(framework=framework, workers=workers, gpus=2 if workers else 0), "default"
    ).run
    counts = {role: spec.count for role, spec in run.spec.roles.items()}
    assert counts.pop("worker", 0) == workers or (not workers and set(counts.values()) <= {1})
    assert set(counts.values()) <= {1}
    assert all({*counts, "worker"} & {*each} for each in ROLES[framework or None].required)
    for role, template in plan(run).templates.items() if workers else ():
        limits = template.main.get("resources", {}).get("limits", {})
        assert bool(limits) == (role == "worker")


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("framework", OWN_COMMANDS)
def test_the_program_is_that_of_the_role_that_ends_the_run(framework: str, workers: int) -> None:
    """The other roles run programs of the framework; its guide has the same commands."""
    run = checked(made(framework=framework, workers=workers, gpus=1), "default").run
    planned = plan(run)
    ends = FRAMEWORKS[framework].roles.ends[0]
    commands = {
        role: template.main.get("command") or list(planned.replica_env(role, 0).command)
        for role, template in planned.templates.items()
    }
    assert commands.pop(ends) == ["python", "train.py"]
    assert all(commands.values())
    guide = " ".join((ROOT / "docs/reference/frameworks.md").read_text().split())
    for role, command in OWN_COMMANDS[framework].items():
        assert role in commands or (role == "worker" and not workers)
        assert f"command: [{', '.join(command)}]" in guide or not command


@pytest.mark.parametrize("framework", ["deepspeed", "spark"])
def test_without_such_a_role_all_run_the_program(framework: str) -> None:
    run = checked(made(framework=framework, workers=2 if framework == "deepspeed" else 0), "a").run
    for template in plan(run).templates.values():
        assert template.main["command"] == ["python", "train.py"]


def test_the_fewest_fields_are_written() -> None:
    container = {"name": "main", "image": IMAGE, "command": ["python", "train.py"]}
    assert made() == {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "Run",
        "metadata": {"name": "mnist"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    assert not any(each.written for each in effective_settings(checked(made(), "default").run))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"framework": "nope"}, ("spec.framework", "pytorch")),
        ({"gpus": -1}, ("resources.limits", "negative")),
        ({"gpus": 1, "gpu_resource": "cpu"}, ("GPUs", "cpu", "nvidia.com/gpu")),
        ({"capacity": {"spot": "Sometimes"}}, ("capacity", "Sometimes")),
        ({"restart_scope": "All"}, ("restartScope", "Replica")),
        ({"resources": {"memory": "much"}}, ("memory", "much")),
    ],
)
def test_what_the_api_server_would_refuse_is_an_error(
    settings: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidRun) as caught:
        checked(made(**settings), "default")
    mentions(str(caught.value), *words)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        *((text, True) for text in ("nginx", "a/b:1", "localhost/a", "localhost:5000/a:b")),
        *((text, True) for text in ("[::1]:5000/x", "HOST/x", "a--b/c", "ex.com_b/a", "a:b.C_d-1")),
        ("r.example.com:443/a/b-c__d:1.2@sha256:" + "0" * 64, True),
        *((text, False) for text in ("Nginx", "a b", "a/", "/a", "a:", "a:-1", "a//b", "a/B")),
        *((text, False) for text in ("a@sha256:1", "f" * 64, "-a", "a:b:c", "https://x/y", "a\n")),
        ("a" * 256, False),
    ],
)
def test_an_image_is_what_a_kubelet_can_read(text: str, valid: bool) -> None:
    """Held against distribution/reference 0.6.0: 120,000 random texts, on 2026-11-29."""
    assert is_image(text) == valid


def test_an_image_that_no_kubelet_reads_is_an_error() -> None:
    """With its place, and the form that is wanted."""
    raw = manifest(NewRun("mnist", "Example/Mnist:1"))
    with pytest.raises(InvalidRun) as raised:
        checked(raw, "default")
    mentions(
        str(raised.value),
        "spec.template.spec.containers[0].image",
        "'Example/Mnist:1'",
        "lower case",
    )


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"env": {"a\nB": "1"}}, ("env[0].name", "printable ASCII")),
        ({"volumes": {"a": "/x", "b": "/x/"}}, ("volumeMounts[1].mountPath", "another volume")),
        ({"volumes": {"a": "/x:ro"}}, ("volumeMounts[0].mountPath", "without a colon")),
    ],
)
def test_what_would_fail_later_is_an_error_now(settings: dict[str, Any], facts: list[str]) -> None:
    with pytest.raises(InvalidRun) as raised:
        checked(made(**settings), "default")
    mentions(str(raised.value), *facts)


def test_more_sets_of_pods_than_a_queue_takes_are_an_error() -> None:
    raw = made(workers=12, queue="ml")
    own = [{"index": at, "resources": {"requests": {"cpu": at + 1}}} for at in range(9)]
    raw["spec"]["replicas"]["worker"]["byIndex"] = own
    with pytest.raises(InvalidRun, match="8 sets of pods at most"):
        checked(raw, "default")
