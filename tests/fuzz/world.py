"""The policies that ship, as one cluster would load them: one provider's classes, all folders."""

from __future__ import annotations

from pathlib import Path

from webhook.policy.load import load
from webhook.server.folder import read_folder

POLICIES = Path(__file__).parents[2] / "policies"
PROVIDER = "/capacity/gke-spot.yaml"

FILES: dict[str, bytes] = {
    name: content
    for name, content in read_folder(POLICIES).items()
    if "/capacity/" not in name or name.endswith(PROVIDER)
}
SHIPPED = load(FILES).policies
