"""Reviews as the API server sends them, policies to decide by, and a caller without a network."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.types import Message

from tests.policy_tests.writing import policy
from webhook import names
from webhook.admission.app import admission_app
from webhook.admission.handler import Handler
from webhook.decision.arrival import DecisionInputs, NamespaceLabels, Objects
from webhook.decision.decision import Decision
from webhook.decision.notice import Notice
from webhook.errors import NotSynced
from webhook.interception import PATH
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet
from webhook.server.webhook_metrics import Metrics

Json = dict[str, Any]

SPOT = policy(
    "spot-tolerated",
    'match: {namespaces: ["ml-*"]}, '
    "overrides: {tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]}",
)
POOL = policy(
    "pool-required",
    'match: {namespaces: ["ml-*"]}, requirements: {nodeSelector: {pool: experiments}}',
)
SECRET = "hunter2-do-not-log"


def policy_set(*texts: str) -> PolicySet:
    return load({f"{at}.yaml": text.encode() for at, text in enumerate(texts)}).policies


def pod(*, labels: Mapping[str, str] | None = None, **spec: object) -> Json:
    """A pod of a run, with a secret in its environment, as the API server has defaulted it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {names.RUN: "r"} if labels is None else dict(labels)},
        "spec": {
            "containers": [
                {"name": "main", "image": "i", "env": [{"name": "TOKEN", "value": SECRET}]}
            ],
            "schedulerName": "default-scheduler",
            **spec,
        },
    }


def review(obj: object = None, **request: object) -> Json:
    """An AdmissionReview of the creation of the pod, with members of its request changed."""
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0df28fbd",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "p",
            "namespace": "ml-team",
            "operation": "CREATE",
            "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
            "object": pod() if obj is None else obj,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            **request,
        },
    }


class Known:
    """Namespaces of which these labels are known, and no others; `now`: how they are by now."""

    def __init__(
        self,
        known: Mapping[str, Mapping[str, str]],
        now: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._known = known
        self._now = known if now is None else now

    def peek(self, name: str) -> Mapping[str, str] | None:
        return self._known.get(name)

    async def labels(self, name: str) -> Mapping[str, str]:
        known = self._known.get(name)
        if known is None:
            raise NotSynced(f"namespace {name}: not known")
        return known

    async def live(self, name: str, *, fresh: bool = False) -> Mapping[str, str]:  # noqa: ARG002
        found = self._now.get(name)
        if found is None:
            raise NotSynced(f"namespace {name}: not known")
        return found


class Asked(Known):
    """Namespaces of which nothing is known until they are asked for."""

    def peek(self, name: str) -> Mapping[str, str] | None:  # noqa: ARG002
        return None

    async def labels(self, name: str) -> Mapping[str, str]:
        await asyncio.sleep(0)
        return self._known[name]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the app answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def response(self) -> Json:
        response: Json = json.loads(self.body)["response"]
        return response

    @property
    def patch(self) -> list[Json]:
        """The operations of the patch; [] if there is none."""
        text = self.response.get("patch")
        return json.loads(base64.b64decode(text)) if text else []


class Webhook:
    """The app with everything it needs, called in process."""

    def __init__(
        self,
        policies: PolicySet | Callable[[], PolicySet | None] | None,
        *,
        namespaces: NamespaceLabels | None = None,
        default_priority_class: Callable[[], str | None] = lambda: None,
        tell: Callable[[Notice], None] = lambda _notice: None,
        reaches: Callable[[Mapping[str, str], Mapping[str, str]], bool] = lambda *_: True,
        unplaceable: Callable[[Json, Decision, PolicySet], str] = lambda *_: "",
        objects: Objects | None = None,
        classes: Callable[[], Mapping[str, Mapping[str, Json]]] = dict,
    ) -> None:
        self.metrics = Metrics()
        inputs = DecisionInputs(
            policies if callable(policies) else lambda: policies,
            namespaces or Known({"ml-team": {}}),
            default_priority_class,
            unplaceable=unplaceable,
            classes=classes,
        )
        handler = Handler(inputs, self.metrics, tell=tell, reaches=reaches, objects=objects)
        self.app: Starlette = admission_app({PATH: handler.handle}, self.metrics)

    @property
    def registry(self) -> CollectorRegistry:
        return self.metrics.registry

    def counted(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"fairlead_{name}_total", labels) or 0.0

    def post(self, body: bytes | Json, headers: Mapping[str, str] | None = None) -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"content-type": "application/json"} if headers is None else dict(headers)
        answer = call(self.app, "POST", "/mutate", [content], given)
        assert answer is not None
        return answer


def call(*request: Any) -> Answer | None:
    return asyncio.run(called(*request))


async def called(
    app: Starlette,
    method: str,
    path: str,
    parts: Sequence[bytes | None] = (b"",),
    headers: Mapping[str, str] | None = None,
) -> Answer | None:
    """One request whose body comes in these parts; where one is None, the caller goes away."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"timeout=3s",
        "root_path": "",
        "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    waiting = list(parts)
    sent: list[Message] = []

    async def receive() -> Message:
        part = waiting.pop(0)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if not sent:
        return None
    start, end = sent
    headers_sent = {k.decode(): v.decode() for k, v in start["headers"]}
    return Answer(start["status"], headers_sent, end.get("body", b""))
