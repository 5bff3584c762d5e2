"""`fairlead run convert` prints a Run that kubectl takes, and says what it left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.fast_yaml import load_yaml
from tests.wording import Wording, line_with, mentions
from webhook.cli import main
from webhook.cli.run.convert import command
from webhook.run.model import Run

JOB = """\
version: 1
kind: job
tags: [a]
inputs: [{name: lr, type: float}]
build: {image: train}
run: {cmd: "python t.py --lr={{ lr }}"}
"""
OPERATION = "{version: 1.1, kind: operation, hubRef: etl, params: {day: monday}}\n"
COMPONENT = """\
version: 1.1
kind: component
inputs: [{name: day, type: str}]
run: {kind: job, container: {image: etl, args: ["{{ day }}"]}}
"""
Convert = Callable[..., Result]


@pytest.fixture
def convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Convert:
    """The command, in a folder with a job, an operation and its component."""
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("job.yml", JOB),
        ("operation.yaml", OPERATION),
        ("component.yaml", COMPONENT),
    ):
        Path(name).write_text(text)

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(command, arguments, input=stdin)

    return run


def test_the_run_goes_to_stdout_and_the_warnings_to_stderr(
    convert: Convert, wording: Wording
) -> None:
    """Exit code 0; what is printed is a Run."""
    result = convert("-f", "job.yml", "-P", "lr=0.1")
    assert result.exit_code == 0
    run = Run.model_validate(load_yaml(result.stdout), by_alias=True, by_name=False)
    assert run.name == "job"
    first_lines = ["apiVersion: fairlead.dev/v1alpha1", "kind: Run"]
    assert result.stdout.splitlines()[:2] == first_lines
    tags, build = result.stderr.splitlines()
    assert tags.startswith("job.yml:3:1: warning: tags: ")
    mentions(tags, "no tags", "labels under metadata")
    assert build.startswith("job.yml:5:")
    mentions(build, ": warning: build", "--image")
    wording(result.stderr)


def test_errors_have_lines_and_suppress_the_run(convert: Convert, wording: Wording) -> None:
    """Exit code 1."""
    result = convert("-f", "job.yml")
    assert (result.exit_code, result.stdout) == (1, "")
    error = line_with(result.stderr, "job.yml:4:10: inputs[0]: ", "lr", "no value", "--param lr=")
    wording(error)


def test_strict_fails_for_warnings(convert: Convert) -> None:
    """And prints no Run."""
    result = convert("-f", "job.yml", "-P", "lr=0.1", "--strict")
    assert (result.exit_code, result.stdout) == (1, "")


def test_strict_fails_for_defaults_that_differ(convert: Convert) -> None:
    """And prints them, where a file without a warning has such."""
    Path("tf.yaml").write_text(
        "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {tfReplicaSpecs: "
        "{Chief: {template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}}"
    )
    result = convert("-f", "tf.yaml", "--strict")
    assert (result.exit_code, result.stdout) == (1, "")
    mentions(result.stderr, "note:", "cleanPodPolicy is Running (TFJob: None)")
    assert convert("-f", "tf.yaml").exit_code == 0


def test_a_given_image_produces_no_warning_about_building(convert: Convert) -> None:
    """The options name the Run and its image."""
    result = convert("-f", "job.yml", "-P", "lr=0.1", "--image", "own:1", "--name", "nightly")
    document = load_yaml(result.stdout)
    assert document["metadata"] == {"name": "nightly"}
    assert document["spec"]["template"]["spec"]["containers"][0]["image"] == "own:1"
    assert "build" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("-f", "operation.yaml", "--component", "component.yaml"),
        ("-f", "component.yaml", "-f", "operation.yaml"),
    ],
)
def test_an_operation_and_its_component_are_given_together(
    convert: Convert, arguments: tuple[str, ...]
) -> None:
    """In either way, and in either order."""
    result = convert(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    container = load_yaml(result.stdout)["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["monday"]


def test_json_and_standard_input(convert: Convert) -> None:
    """What kubectl takes as well; a file from nowhere gives no name, so the Run has a plain one."""
    result = convert("-f", "-", "-o", "json", stdin=COMPONENT.replace("inputs", "#"))
    assert result.exit_code == 1
    result = convert("-f", "-", "-o", "json", "-P", "day=a", stdin=COMPONENT)
    assert json.loads(result.stdout)["metadata"] == {"name": "run"}


def test_a_param_has_a_name_and_a_value(convert: Convert, wording: Wording) -> None:
    """Anything else is wrong usage."""
    result = convert("-f", "job.yml", "-P", "lr")
    assert result.exit_code == 2
    error = result.stderr.partition("Error: ")[2]
    mentions(error, "--param lr:", "NAME=VALUE")
    wording(error)


def test_a_file_that_cannot_be_read_is_named(
    convert: Convert,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One that is not there is wrong usage; one that breaks off is an error."""
    assert convert("-f", "nowhere.yml").exit_code == 2
    broken = tmp_path / "broken.yml"
    broken.write_text("version: [")
    monkeypatch.setattr("sys.argv", ["fairlead", "run", "convert", "-f", "broken.yml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "broken.yml:2:1: not YAML" in capsys.readouterr().err


BATCH_JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: count}
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: example.invalid/count}]
"""


def test_an_engines_object_is_converted_too(convert: Convert, wording: Wording) -> None:
    """What a Run does not have is a warning with its place."""
    Path("count.yaml").write_text(BATCH_JOB)
    result = convert("-f", "count.yaml", "--name", "other")
    assert result.exit_code == 0
    run = Run.model_validate(load_yaml(result.stdout), by_alias=True, by_name=False)
    assert (run.name, run.spec.roles["worker"].count) == ("other", 3)
    mentions(result.stderr, "count.yaml:5:", "spec.completionMode", "left out")
    wording(result.stderr)


def test_an_image_is_only_for_polyaxonfiles(convert: Convert, wording: Wording) -> None:
    """An object has its own."""
    Path("count.yaml").write_text(BATCH_JOB)
    result = convert("-f", "count.yaml", "--image", "x")
    assert result.exit_code == 2
    mentions(result.stderr, "--image and --param are for Polyaxonfiles")
    wording(result.stderr)
