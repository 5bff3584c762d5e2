"""Every command, from the parser, with arguments: a new command is in each test of all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from tests.cli.run.scripted_cluster import run_object
from tests.policy_tests.writing import policy
from tests.simulation.test_scenario import GOOD as SCENARIO
from webhook.cli import fairlead
from webhook.cli.run.cluster import RunName

# What a command is called: run, create.
Words = tuple[str, ...]

RUN: Final = "mnist"
FILES: Final = {
    "run.json": json.dumps(
        {
            **run_object(),
            "metadata": {"name": RUN},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}},
        }
    ),
    "policy.yaml": policy("pool", "defaults: {nodeSelector: {pool: a}}"),
    "scenario.yaml": SCENARIO,
    "code/train.py": "print()\n",
    "policy.test.yaml": """
apiVersion: fairlead.dev/v1alpha1
kind: PolicyTest
policies: [policy.yaml]
tests:
- {name: a, pod: {labels: {fairlead.dev/run: mnist}}, expect: {result: placed}}
""",
}
# They serve until they are stopped, and try again: they have tests of their own.
_SERVERS: Final = {("serve",), ("controller",), ("ui",)}
# What makes a command ask the cluster, beyond what it requires.
_MORE: Final[dict[Words, Words]] = {
    ("check",): ("--nodes", "cluster"),
    ("explain",): (f"run/{RUN}",),
    ("preview",): (f"run/{RUN}",),
    ("run", "create"): ("-f", "run.json", "--code", "code"),
    ("run", "simulate"): ("--policies", "cluster", "--repeat", "1"),
    ("run", "top"): ("--once",),
    ("serve",): ("--policies", "policy.yaml", "--self-signed"),
    ("ui",): ("cluster", "--no-browser"),
    ("policy", "sources"): ("--policies", "cluster"),
    ("test",): ("--policies", "cluster"),
    ("install",): ("--image", "example.invalid/fairlead:1"),
}
_VALUES: Final = {
    "path": "policy.test.yaml",
    "where": "cluster",
    "paths": "policy.yaml",
    "old": "policy.yaml",
    "new": "policy.yaml",
    "filenames": "run.json",
    "span": "10m",
    "filename": "run.json",
    "policies": "policy.yaml",
    "scenario": "scenario.yaml",
    "backend_name": "jobset",
    "name": "pool",
    "labels": "team-pool",
}


def leaves(
    command: click.Command = fairlead, words: Words = ()
) -> Iterator[tuple[Words, click.Command]]:
    """Every command without subcommands."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, (*words, name))


ALL: Final = dict(leaves())
# Those with options for a cluster.
ASKING: Final = {
    words: command
    for words, command in ALL.items()
    if words not in _SERVERS and any(each.name == "kubeconfig" for each in command.params)
}


def write_files(folder: Path) -> None:
    """Write the files that the arguments name."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def arguments(words: Words) -> Words:
    """The command line of a command that asks about the Run RUN, and neither waits nor prompts."""
    found = [*words]
    for each in ALL[words].params:
        if isinstance(each.type, RunName):
            found.append(RUN)
        elif each.required:
            assert each.name in _VALUES, f"{words} requires {each.name}: give it a value here"
            option = () if isinstance(each, click.Argument) else each.opts[:1]
            found += [*option, _VALUES[each.name]]
        elif "--yes" in each.opts:
            found.append("--yes")
        elif "--timeout" in each.opts:
            found += ["--timeout", "30s"]
    return (*found, *_MORE.get(words, ()))
