"""Runs, pods and an API server that answers as a test wants, for tests of the controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from webhook import names
from webhook.controller.stored_run import StoredRun, store
from webhook.errors import ClusterError
from webhook.kube.client import Client, Listing
from webhook.kube.failing_writes import FailingWrites
from webhook.kube.writer import Writer
from webhook.run.model import Run

Json = dict[str, Any]

UID = "uid-mnist"
TEMPLATE: Json = {"spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]}}


def raw_run(
    *, name: str = "mnist", version: int = 5, status: Json | None = None, **spec: Any
) -> Json:
    """A Run as the API server keeps it: three workers of JAX unless told otherwise."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "generation": 1,
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "framework": "jax",
            "template": TEMPLATE,
            "replicas": {"worker": {"count": 3}},
            **spec,
        },
        **({"status": status} if status else {}),
    }


def stored_run(**changes: Any) -> StoredRun:
    return store(raw_run(**changes))


def run(**changes: Any) -> Run:
    raw = raw_run(**changes)
    return Run.model_validate(raw, by_alias=True, by_name=False)


def owner_reference(run_uid: str) -> Json:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "name": "mnist",
        "uid": run_uid,
        "controller": True,
    }


def raw_pod(
    index: int, *, uid: str = "", run_uid: str = UID, version: int = 9, **metadata: Any
) -> Json:
    owner = owner_reference(run_uid)
    return {
        "metadata": {
            "name": f"mnist-worker-{index}",
            "namespace": "lab",
            "uid": uid or f"uid-{index}",
            "resourceVersion": str(version),
            "labels": {names.MANAGED_BY: names.MANAGER, names.RUN_UID: run_uid},
            "ownerReferences": [owner],
            **metadata,
        },
        "status": {"phase": "Pending"},
    }


def raw_node(
    name: str,
    *,
    ready: str = "True",
    uid: str = "",
    version: int = 9,
    shut_down: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Json:
    """A node; while it is not ready, it is so since a moment that is always the same."""
    taints = [{"key": names.TAINT_SHUTDOWN, "effect": "NoSchedule"}] if shut_down else []
    since = "2026-11-21T20:00:00Z"
    return {
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-21T08:00:00Z",
            "labels": dict(labels or {}),
        },
        "spec": {"taints": taints},
        "status": {
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {
                    "type": "Ready",
                    "status": ready,
                    "lastTransitionTime": since,
                    "lastHeartbeatTime": "2026-11-21T20:14:00Z",
                },
            ]
        },
    }


def refused(status: int | None, reason: str = "", words: str = "") -> ClusterError:
    """What the client raises."""
    return ClusterError(
        f"POST: {status} {reason}: {words}", status=status, reason=reason, words=words
    )


@dataclass
class Api:
    """Stands for client and writer. A call's answer is what `answers` has for it, raised if it is
    an error; what is not there is stored as it came, or is not found."""

    answers: dict[tuple[str, str], Any] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    versions: int = 100
    # Of lists the size of a page and the form that were asked for.
    pages: dict[str, tuple[int, str]] = field(default_factory=dict)
    failing_writes: FailingWrites = field(default_factory=FailingWrites)

    @property
    def client(self) -> Client:
        return cast(Client, self)

    @property
    def writer(self) -> Writer:
        return cast(Writer, self)

    def named(self, verb: str) -> list[str]:
        """The names in the paths, or bodies, of the calls of this verb."""
        return [name for done, name in self.calls if done == verb]

    async def get(self, path: str) -> Json:
        return self._answer("get", path.rpartition("/")[2], None)

    find = Client.find

    async def create(self, path: str, body: Mapping[str, Any], *, query: Any = None) -> Json:
        del path, query
        return self._answer("create", body["metadata"]["name"], body)

    async def replace(self, path: str, body: Mapping[str, Any]) -> Json:
        del path
        return self._answer("replace", body["metadata"]["name"], body)

    async def patch(self, path: str, body: Mapping[str, Any], patch_type: str) -> Json:
        del patch_type
        return self._answer("patch", path.rpartition("/")[2], body)

    async def delete(self, path: str, body: Mapping[str, Any]) -> Json:
        return self._answer("delete", path.rpartition("/")[2], body)

    async def list(
        self,
        path: str,
        keep: Any,
        *,
        query: Any = None,
        page_size: int = 0,
        accept: str = "",
    ) -> Listing[Any]:
        self.pages[path.rpartition("/")[2]] = page_size, accept
        items = self._answer("list", path.rpartition("/")[2], None)["items"]
        key, equals, value = (query or {}).get("labelSelector", "").partition("=")
        if equals:
            items = [one for one in items if one["metadata"].get("labels", {}).get(key) == value]
        return Listing([keep(each) for each in items], str(self.versions))

    def _answer(self, verb: str, name: str, body: Any) -> Json:
        self.calls.append((verb, name))
        self.bodies.append(body)
        answer = self.answers.get((verb, name), self.answers.get((verb, "*")))
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return cast(Json, answer)
        if body is None or verb in ("delete", "patch"):
            raise refused(404, "NotFound")
        self.versions += 1
        metadata = {
            "uid": f"new-{self.versions}",
            **body["metadata"],
            "resourceVersion": str(self.versions),
        }
        return {**body, "metadata": metadata}
