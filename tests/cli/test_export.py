"""`fairlead generate map` prints what kubectl takes, or says what it cannot say."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tests.exported.sets import text
from tests.fast_yaml import load_all_yaml
from webhook.cli import fairlead
from webhook.cli.generate.map import command


def written(folder: Path, *specs: dict[str, object]) -> str:
    """A file of policies."""
    path = folder / "policies.yaml"
    path.write_text(text(*specs))
    return str(path)


def test_it_prints_documents_that_kubectl_applies(tmp_path: Path) -> None:
    """Two policies, each with a binding for the default sources; nothing on standard error."""
    path = written(tmp_path, {"overrides": {"labels": {"team": "x"}}})
    result = CliRunner().invoke(command, ["--policies", path])
    assert result.exit_code == 0, result.output
    found = list(load_all_yaml(result.stdout))
    assert {each["apiVersion"] for each in found} == {"admissionregistration.k8s.io/v1"}
    assert len(found) == 6
    assert result.stderr == ""


def test_sources_and_namespaces_are_the_installers_choice(tmp_path: Path) -> None:
    """As of the webhook and of the guards."""
    path = written(tmp_path, {"overrides": {"labels": {"team": "x"}}})
    options = ["--policies", path, "--source", "mlrun", "--only-namespace", "trial"]
    found = list(load_all_yaml(CliRunner().invoke(command, options).stdout))
    names = [each["metadata"]["name"] for each in found]
    assert names == ["fairlead-exported", "fairlead-exported-mlrun-0"] * 2
    assert "trial" in str(found[1]["spec"]["matchResources"]["namespaceSelector"])


def test_a_set_that_check_refuses_is_not_exported(tmp_path: Path) -> None:
    """Requirements that no pod meets together."""
    path = written(
        tmp_path,
        {"requirements": {"nodeSelector": {"pool": "a"}}},
        {"requirements": {"nodeSelector": {"pool": "b"}}},
    )
    result = CliRunner().invoke(command, ["--policies", path])
    assert (result.exit_code, result.stdout) == (1, "")
    assert CliRunner().invoke(fairlead, ["check", path]).exit_code == 1
