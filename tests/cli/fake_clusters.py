"""What a fake API server has by path: the cluster of golden/sessions/shared/, and more."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.fast_yaml import load_yaml
from webhook import names
from webhook.errors import InvalidDocuments
from webhook.interception import webhooks
from webhook.judgement.set_judgement import load_objects

SHARED = Path(__file__).parents[1] / "golden" / "sessions" / "shared"
CLUSTER: dict[str, Any] = load_yaml((SHARED / "cluster.yaml").read_text())
POLICIES = "/apis/fairlead.dev/v1alpha1/placementpolicies"
SENDING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fairlead"


def paths_of(more: dict[str, Any]) -> dict[str, Any]:
    """Every path: lists, also of all namespaces, and their objects; null is not found.

    `THE SET` in a text is the hash of the policies.
    """
    given = {SENDING: {"metadata": {}, "webhooks": webhooks(url="https://e")}, **CLUSTER, **more}
    objects = {
        f"placementpolicies/{each['metadata']['name']}": json.dumps(
            {**each, "apiVersion": names.API_VERSION, "kind": "PlacementPolicy", "status": None}
        ).encode()
        for each in given[POLICIES] or ()
    }
    text = json.dumps(given)
    with suppress(InvalidDocuments):
        text = text.replace("THE SET", load_objects(objects).policies.hash)
    given = json.loads(text)
    found: dict[str, Any] = {}
    for path, answer in given.items():
        found.setdefault(path, answer)
        if not isinstance(answer, list):
            continue
        for each in answer:
            if within := re.search(r"/namespaces/([^/]+)/", path):
                each["metadata"].setdefault("namespace", within[1])
            if name := each["metadata"].get("name"):
                found.setdefault(f"{path}/{name}", each)
        everywhere = re.sub(r"/namespaces/[^/]+(/\w+)$", r"\1", path)
        if everywhere not in given:
            found[everywhere] = [*found.get(everywhere, ()), *answer]
    return found
