"""Templates of Runs merge as the real kubectl merges a strategic patch into a pod template."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.objects import an_object
from tests.run.test_template import CASES, NOT_AS_KUBECTL


@pytest.mark.parametrize("case", [name for name in CASES if name not in NOT_AS_KUBECTL])
def test_a_template_merges_as_kubectl_patches(
    case: str, kubectl_path: Path, tmp_path: Path
) -> None:
    """The cases that our own merging is held to, by `kubectl patch --local --type=strategic`."""
    base, over, expected = CASES[case]
    target = tmp_path / "template.json"
    meta = an_object("v1", "PodTemplate", "t")
    target.write_text(json.dumps({**meta, "template": base}))
    patch = json.dumps({"template": over})
    command = [str(kubectl_path), "patch", "--local", "--type=strategic", "--output=json"]
    result = subprocess.run(
        [*command, "--filename", str(target), "--patch", patch],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["template"] == expected
