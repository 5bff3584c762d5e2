"""`fairlead version`."""

from __future__ import annotations

import json
import platform

from click.testing import CliRunner

import webhook
from webhook.cli import fairlead
from webhook.text.documents import REPORTS


def test_it_says_its_own_version_and_pythons() -> None:
    """As text, and for programs."""
    said = CliRunner().invoke(fairlead, ["version"]).stdout
    assert said.split() == ["fairlead", webhook.__version__, "python", platform.python_version()]
    found = json.loads(CliRunner().invoke(fairlead, ["version", "-o", "json"]).stdout)
    versions = {"fairlead": webhook.__version__, "python": platform.python_version()}
    assert found == {"apiVersion": REPORTS, "kind": "Version", **versions}
