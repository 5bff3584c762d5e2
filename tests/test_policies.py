"""The policies that ship are sound, alone and together, and each is tested."""

from __future__ import annotations

import json
import shutil
from itertools import chain
from pathlib import Path

import jsonschema
import pytest

from tests.fast_yaml import load_all_yaml
from webhook.errors import InvalidDocuments
from webhook.policy.load import load
from webhook.questions.policy_test_report import run
from webhook.server.folder import is_test_file, read_folder

ROOT = Path(__file__).parents[1]
POLICIES = ROOT / "policies"
FILES = sorted(POLICIES.rglob("*.yaml"))
PROVIDERS = sorted(
    path for path in (POLICIES / "capacity").glob("*.yaml") if not is_test_file(path.name)
)
FOLDERS = sorted({path.parent for path in FILES} - {POLICIES / "capacity"})


def name(path: Path) -> str:
    """A path as test names show it."""
    return str(path.relative_to(POLICIES).with_suffix(""))


def test_every_shipped_test_passes_and_reaches_every_policy() -> None:
    """What `fairlead test policies --all-reached` says."""
    report = run(POLICIES)
    failed = [
        (verdict.file, verdict.line, verdict.name, verdict.failures)
        for file in report.files
        for verdict in file.verdicts
        if not verdict.passed
    ]
    assert [finding for file in report.files for finding in file.findings] == []
    assert failed == []
    assert report.unreached == []
    assert report.policies >= 20


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_file_names_its_schema_and_is_valid_by_it(path: Path) -> None:
    """So that an editor checks it while it is changed."""
    first = path.read_text().splitlines()[0]
    schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
    wanted = "policytest.json" if is_test_file(path.name) else "fairlead.json"
    assert schema.resolve() == ROOT / "schemas" / wanted
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
    for document in load_all_yaml(path.read_text()):
        validator.validate(document)


@pytest.mark.parametrize("path", [path for path in FILES if not is_test_file(path.name)], ids=name)
def test_every_policy_file_has_a_test_file(path: Path) -> None:
    """Of the same name."""
    assert path.with_suffix(".test.yaml").exists()


@pytest.mark.parametrize("provider", PROVIDERS, ids=name)
@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_every_folder_loads_with_every_provider(folder: Path, provider: Path) -> None:
    """No error and no warning, whichever cluster it is taken to."""
    loaded = load(read_folder(folder) | read_folder(provider))
    assert loaded.warnings == ()
    assert loaded.policies.policies


@pytest.mark.parametrize("provider", PROVIDERS, ids=name)
def test_all_folders_load_together(provider: Path) -> None:
    """No two policies of one name: whoever takes everything gets one sound set."""
    folders = dict(chain.from_iterable(read_folder(folder).items() for folder in FOLDERS))
    assert load(folders | read_folder(provider)).warnings == ()


@pytest.mark.parametrize("provider", PROVIDERS, ids=name)
def test_every_provider_tells_the_same_classes(provider: Path) -> None:
    """So that a policy that names them works with each."""
    assert set(load(read_folder(provider)).policies.classes) == {"spot", "on-demand", "gpu"}


def test_a_set_of_ones_own_is_made_by_copying(tmp_path: Path) -> None:
    """As policies/README.md has it: the tests come along, and pass."""
    own = tmp_path / "my-policies"
    for folder in ("stateful-on-demand", "non-root"):
        shutil.copytree(POLICIES / folder, own / folder)
    (own / "capacity").mkdir()
    for file in POLICIES.glob("capacity/gke-spot.*"):
        shutil.copy(file, own / "capacity")
    assert load(read_folder(own)).warnings == ()
    report = run(own)
    assert report.passed
    assert report.unreached == []


def test_providers_are_alternatives() -> None:
    """Two at once are refused, and the error names both files."""
    one, other, *_ = PROVIDERS
    with pytest.raises(InvalidDocuments, match=r"CapacityClass .* already") as caught:
        load(read_folder(one) | read_folder(other))
    assert one.name in str(caught.value)
    assert other.name in str(caught.value)
