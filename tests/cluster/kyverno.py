"""The definition of PolicyReport, from the Go module of Kyverno that `files/kyverno` pins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from webhook.sandbox.binaries import find_toolchain, go_environment
from webhook.sandbox.cache_folder import cache_directory
from webhook.sandbox.progress import Lines

_PIN: Final = Path(__file__).parent / "files" / "kyverno"
_MODULE: Final = "github.com/kyverno/kyverno"
_FILE: Final = "config/crds/policyreport/wgpolicyk8s.io_policyreports.yaml"


def policy_report_definition() -> dict[str, Any]:
    """The CustomResourceDefinition that Kyverno installs; its module is downloaded if missing."""
    toolchain = find_toolchain(os.environ, cache_directory(os.environ), Lines(sys.stderr))
    done = subprocess.run(
        [str(toolchain.go), "mod", "download", "-json", _MODULE],
        cwd=_PIN,
        env=go_environment(toolchain, os.environ),
        capture_output=True,
        text=True,
        check=True,
        timeout=150,
    )
    text = (Path(json.loads(done.stdout)["Dir"]) / _FILE).read_text()
    found: dict[str, Any] = yaml.safe_load(text)
    return found
