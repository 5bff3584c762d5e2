"""Which pods a rollout keeps, by Kubernetes' own controllers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.objects import an_object
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.rollout import Kept, at_revision, kept_of

Json = dict[str, Any]
OLD_AND_NEW = {"currentRevision": "s-1", "updateRevision": "s-2"}


def stateful_set(partition: int, status: Json = OLD_AND_NEW, **spec: object) -> Json:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    made = an_object("apps/v1", "StatefulSet", "s", {"updateStrategy": strategy, **spec})
    return {**made, "status": status}


ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}


@pytest.mark.parametrize(
    ("workload", "keeps", "revision"),
    [
        (stateful_set(2), ("s-0", "s-1"), "s-1"),
        (stateful_set(2, ordinals={"start": 5}), ("s-0", "s-1", "s-2", "s-6"), "s-1"),
        (stateful_set(2, {"currentRevision": "s-1", "updateRevision": "s-1"}), ("s-0", "s-1"), ""),
        (stateful_set(0), (), ""),
        (an_object("apps/v1", "StatefulSet", "s", {}), (), ""),
        (an_object("apps/v1", "StatefulSet", "s", ON_DELETE), ("s-0", "s-1", "s-2"), ""),
        (an_object("apps/v1", "DaemonSet", "s", ON_DELETE), ("s-0", "s-x"), ""),
        (an_object("apps/v1", "Deployment", "s", {"paused": True}), ("s-0", "s-x"), ""),
        (an_object("apps/v1", "Deployment", "s", {"paused": False}), (), ""),
        (an_object("apps.kruise.io/v1", "StatefulSet", "s", ON_DELETE), (), ""),
    ],
)
def test_what_a_rollout_keeps(workload: Json, keeps: tuple[str, ...], revision: str) -> None:
    """By the partition, the strategy and the pause; a kind of another group has its own rules."""
    kept = kept_of(workload)
    names = {"s-0", "s-1", "s-2", "s-6", "s-7", "s-x", *keeps}
    found = {name for name in names if kept and kept.keeps(name)}
    if kept and kept.below is None:
        assert found == names
    else:
        assert found == set(keeps)
    assert (kept.revision if kept else "") == revision


def test_a_revision_of_another_workload_is_not_taken() -> None:
    """Anybody who may write revisions may write any; the template is that of the revision."""
    made = an_object("apps/v1", "StatefulSet", "s", {"template": {"spec": {}}, "replicas": 2})
    made["metadata"]["uid"] = "u"
    template = {"$patch": "replace", "spec": {"nodeName": "old"}}
    revision = {
        "metadata": {"ownerReferences": [{"uid": "u"}]},
        "data": {"spec": {"template": template}},
    }
    found = at_revision(Object(ANSWERED, made), revision)
    assert found
    assert found.value["spec"] == {"template": {"spec": {"nodeName": "old"}}, "replicas": 2}
    for broken in (
        {**revision, "metadata": {"ownerReferences": [{"uid": "v"}]}},
        {**revision, "metadata": {}},
        {**revision, "data": {"spec": {"template": "text"}}},
        {**revision, "data": None},
    ):
        assert at_revision(Object(ANSWERED, made), broken) is None
    assert Kept("x", 1).keeps("s-x") is False
