"""`fairlead run create --preview` beside a webhook that serves the cluster's policies."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.manifests import policy_text
from tests.cluster.spaces import NewNamespace
from tests.cluster.test_dry_run import RUN, STRICT, TEMPLATE, WHOLE
from tests.cluster.webhooks import serving_objects
from tests.eventually import eventually
from tests.objects import an_object
from tests.wording import mentions
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = [
    "tests.cluster.webhook_fixtures",
    "tests.cluster.policy_fixtures",
    "tests.cluster.run_fixtures",
]


def test_the_pods_are_asked_about_as_decided_where_all_pods_are_sent_to_the_webhook(
    policy_api: ControlPlane, new_namespace: NewNamespace, tmp_path: Path
) -> None:
    """It would take a pod without marks for one of the default kind, with that kind's policies."""
    space = new_namespace({**STRICT, **WHOLE})
    (tmp_path / "run.yaml").write_text(json.dumps(RUN))
    with serving_objects(policy_api):
        for kind, user in ("job", 0), ("experiment", 1000):
            match, sets = f"match: {{kinds: [{kind}]}}", f"securityContext: {{runAsUser: {user}}}"
            text = policy_text(f"of-{kind}", match, f"overrides: {{{sets}}}")
            space.kubectl("create", "-f", "-", stdin=text)
        bare = an_object("v1", "Pod", "bare", TEMPLATE["spec"])
        path = f"{space.path('pods')}?dryRun=All"
        eventually(
            "the webhook serves them", lambda: space.plane.api.call("POST", path, bare)[0] == 403
        )
        found = space.ask("run", "create", "--from", tmp_path / "run.yaml", "--preview")
    assert found.exit_code == 0, found.output
    mentions(found.output, "created")
    assert "whether the API server takes" not in found.output
