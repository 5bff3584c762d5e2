"""What files are decided with, where a cluster is asked for the policies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.cli.files import POD
from tests.kube.fake_api import answering, fake_api, write_kubeconfig
from webhook.cli.decisions import decisions
from webhook.cli.offline import Offline
from webhook.cli.options import CLUSTER, Kubeconfig
from webhook.cli.selection import Selection, fails, read_files
from webhook.interception import webhooks

GROUP = "/apis/fairlead.dev/v1alpha1"
SENDING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fairlead"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
URGENT = {
    "metadata": {"name": "urgent"},
    "spec": {"defaults": {"priorityClassName": "urgent"}},
}
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 7,
}


def offline_of(folder: Path, objects: str) -> Offline:
    """The objects under the one policy of a cluster that has no PriorityClass."""
    (folder / "o.yaml").write_text(objects)
    there: dict[str, Any] = {
        f"{GROUP}/capacityclasses": [],
        f"{GROUP}/placementexceptions": [],
        f"{GROUP}/runsources": [],
        f"{GROUP}/placementpolicies": [URGENT],
        "/api/v1/namespaces": [],
        CLASSES: [],
        SENDING: {"metadata": {}, "webhooks": webhooks(url="https://example.com")},
    }

    async def run() -> Offline:
        async with fake_api(answering(there)) as api:
            selection = Selection(
                words=(),
                kubeconfig=Kubeconfig(write_kubeconfig(folder, api.url)),
                filenames=(folder / "o.yaml",),
                policies=(CLUSTER,),
                namespace="",
                namespaces_file=None,
                nodes=None,
                dry_run=None,
                history=(),
                fail_on=(),
            )
            return await asyncio.to_thread(read_files, selection)

    return asyncio.run(run())


def test_pods_that_get_a_class_that_the_cluster_does_not_have_fail(tmp_path: Path) -> None:
    """Unless the class is among the files: it would be created with them."""
    offline = offline_of(tmp_path, POD)
    (refused,) = decided = decisions(offline)
    assert refused.decision.result == "placed"
    assert "no PriorityClass 'urgent'" in refused.refusals[0]
    assert fails((), decided, ())
    offline = offline_of(tmp_path, f"{POD}---\n{json.dumps(CLASS)}\n")
    (there,) = decided = decisions(offline)
    assert there.admitted
    assert not fails((), decided, ())
