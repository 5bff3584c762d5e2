"""Locks are read whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.lock import Locked, read

ROOT = Path(__file__).parents[2]
ONE, TWO = "0" * 64, "f" * 64


def test_a_package_has_version_marker_and_hashes() -> None:
    """Over as many lines as the lock takes, comments left out."""
    text = (
        f"# made by hand\nClick==8.5.1 \\\n    --hash=sha256:{ONE} \\\n    --hash=sha256:{TWO}\n"
        f"    # via nobody\ncffi==2.1.1 ; python_version < '4' \\\n    --hash=sha256:{ONE}\n"
    )
    assert read(text) == [
        Locked("click", "8.5.1", "", (ONE, TWO)),
        Locked("cffi", "2.1.1", "python_version < '4'", (ONE,)),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "click>=8",
        "click==8.5.1",
        f"click==8.5.1 --hash=md5:{ONE}",
        "click==8.5.1 --hash=sha256:00",
        f"--index-url elsewhere --hash=sha256:{ONE}",
        f"click @ elsewhere --hash=sha256:{ONE}",
    ],
)
def test_what_is_not_pinned_by_hash_is_refused(line: str) -> None:
    """A bill that left it out would be wrong."""
    with pytest.raises(ValueError, match="want name==version"):
        read(line)


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("*.lock")))
def test_every_package_of_every_lock_is_pinned_by_hash(name: str) -> None:
    """And no lock says where a file comes from."""
    text = (ROOT / name).read_text()
    packages = read(text)
    assert len(packages) > 3
    # Versions may differ by marker.
    assert len({(each.name, each.marker) for each in packages}) == len(packages)
    assert "://" not in text
