"""The policies that ship, as one cluster would load them: one provider's classes, all folders.

And exceptions to them, of which none ships.
"""

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

# In force for pods of many kinds, and one that has ended, whenever this runs.
EXCEPTIONS: bytes = b"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: everywhere}
spec:
  policies: ["*"]
  match: {podSelector: {matchLabels: {stage: debug}}}
  until: "2099-01-01T00:00:00+02:00"
  reason: To see what comes of it.
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: whole}
spec:
  policies: [core, non-root]
  match: {namespaces: ["wh?le"]}
  until: "2099-01-01T00:00:00Z"
  reason: To see what comes of it.
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: ended}
spec:
  policies: [jobs, workers-on-spot, non-root]
  match: {namespaces: ["*"]}
  until: "2020-01-01T00:00:00Z"
  reason: To see what comes of it.
"""
