"""`fairlead export map` prints what kubectl takes, or says what it cannot say."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.exported.sets import text
from tests.fast_yaml import load_all_yaml
from tests.wording import Wording, mentions
from webhook.cli.export import policies_as_map
from webhook.errors import NotExported


def written(folder: Path, *specs: dict[str, object]) -> str:
    """A file of policies."""
    path = folder / "policies.yaml"
    path.write_text(text(*specs))
    return str(path)


def test_it_prints_documents_that_kubectl_applies(tmp_path: Path) -> None:
    """Two policies, each with a binding for the default sources; nothing on standard error."""
    path = written(tmp_path, {"overrides": {"labels": {"team": "x"}}})
    result = CliRunner().invoke(policies_as_map, ["--policies", path])
    assert result.exit_code == 0, result.output
    found = list(load_all_yaml(result.stdout))
    assert {each["apiVersion"] for each in found} == {"admissionregistration.k8s.io/v1"}
    assert len(found) == 6
    assert result.stderr == ""


def test_policies_under_audit_are_named(tmp_path: Path, wording: Wording) -> None:
    """On standard error, so that the documents stay documents."""
    path = written(
        tmp_path,
        {"overrides": {"labels": {"team": "x"}}},
        {"enforcement": "Audit", "overrides": {"labels": {"team": "y"}}},
    )
    result = CliRunner().invoke(policies_as_map, ["--policies", path])
    (note,) = result.stderr.splitlines()
    mentions(note, "left out", "Audit", ": p1")
    wording(note)


def test_nothing_is_printed_of_a_set_that_cannot_be_exported(tmp_path: Path) -> None:
    """Half of a set would be another set."""
    path = written(tmp_path, {"defaults": {"nodeSelector": {"kubernetes.io/os": "linux"}}})
    result = CliRunner().invoke(policies_as_map, ["--policies", path])
    assert isinstance(result.exception, NotExported)
    assert result.stdout == ""
    with pytest.raises(NotExported, match="policy p0"):
        raise result.exception


def test_sources_and_namespaces_are_the_installers_choice(tmp_path: Path) -> None:
    """As of the webhook and of the guards."""
    path = written(tmp_path, {"overrides": {"labels": {"team": "x"}}})
    options = ["--policies", path, "--source", "mlrun", "--only-namespace", "trial"]
    found = list(load_all_yaml(CliRunner().invoke(policies_as_map, options).stdout))
    names = [each["metadata"]["name"] for each in found]
    assert names == ["fairlead-exported", "fairlead-exported-mlrun-0"] * 2
    assert "trial" in str(found[1]["spec"]["matchResources"]["namespaceSelector"])
