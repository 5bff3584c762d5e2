"""`make sbom`: the software bill of materials of a lock, as CycloneDX JSON.

It says what the lock says: package, version and the hashes of its files, and not where a file
comes from, for that differs from one machine to the next. The same lock gives the same bytes.
Source: CycloneDX 1.6; package-url, type pypi.
"""

from __future__ import annotations

import json
import sys
import tomllib
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools import lock

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[1]
# A namespace of our own, so that a lock's serial number is always the same.
_SERIAL: Final = uuid.UUID("1b4bb6a0-6a50-5d0e-9f0b-0d1f6f1c7a11")


def document(project: dict[str, Any], locked: Sequence[lock.Locked]) -> dict[str, Any]:
    """Return the bill of a project (the table [project] of pyproject.toml) and its locked
    packages."""
    name, version = project["name"], project["version"]
    components = [_component(package) for package in locked]
    about = _reference(name, version)
    text = json.dumps([about, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SERIAL, text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": about,
                "name": name,
                "version": version,
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": about,
            }
        },
        "components": components,
        "dependencies": [
            {"ref": about, "dependsOn": [component["bom-ref"] for component in components]}
        ],
    }


def _component(locked: lock.Locked) -> dict[str, Any]:
    reference = _reference(locked.name, locked.version)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference,
        "name": locked.name,
        "version": locked.version,
        # One for each file that the version was published as: any of them may be installed.
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in locked.hashes],
        "purl": reference,
    }
    if locked.marker:
        component["properties"] = [{"name": "fairlead:marker", "value": locked.marker}]
    return component


def _reference(name: str, version: str) -> str:
    # The type's rule: lower case, and a hyphen for an underscore or a dot it leaves alone.
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"


def main() -> None:
    """Print the bill of requirements.lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bill = document(project, lock.read((ROOT / "requirements.lock").read_text()))
    json.dump(bill, sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
