"""The bill of materials holds what the lock holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import lock

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def text() -> str:
    """What `make sbom` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.sbom"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def bill(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_every_locked_package_is_in_it_with_its_hashes(bill: dict[str, Any]) -> None:
    """And nothing else is."""
    found = {
        (
            each["name"],
            each["version"],
            tuple(one["content"] for one in each["hashes"] if one["alg"] == "SHA-256"),
        )
        for each in bill["components"]
    }
    locked = lock.read((ROOT / "requirements.lock").read_text())
    assert found == {(each.name, each.version, each.hashes) for each in locked}


def test_no_address_is_in_it(text: str) -> None:
    """Neither of a registry nor of this machine."""
    assert "://" not in text
    assert str(ROOT) not in text
    assert not re.search(r"[\w-]+\.(?:org|com|io|net)/", text)


def test_it_is_a_document_of_its_format(bill: dict[str, Any]) -> None:
    """What CycloneDX requires of it, and references that lead somewhere."""
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    assert set(bill) == {
        *("bomFormat", "specVersion", "serialNumber", "version"),
        *("metadata", "components", "dependencies"),
    }
    about = bill["metadata"]["component"]
    assert (about["name"], about["type"]) == ("fairlead", "application")
    references = [each["bom-ref"] for each in bill["components"]]
    assert len(set(references)) == len(references)
    assert bill["dependencies"] == [{"ref": about["bom-ref"], "dependsOn": references}]
    for each in bill["components"]:
        assert each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}"
        assert all(re.fullmatch(r"[0-9a-f]{64}", one["content"]) for one in each["hashes"])


def test_the_same_lock_gives_the_same_bytes(text: str) -> None:
    """No clock and no chance is in it: a release can be checked against its tag."""
    again = subprocess.run(
        [sys.executable, "-m", "tools.sbom"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert again.stdout == text
