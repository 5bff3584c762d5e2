"""One API server with five namespaces, in which pods are placed in four ways, or not at all."""

from __future__ import annotations

import base64
import contextlib
import ssl
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson

from tests.bench import fixed_webhook, mutating_policy, pods, reviews
from tests.bench.client import Connection, post
from tests.bench.policies import files
from webhook import names
from webhook.progress import Progress
from webhook.sandbox.api import wait_until
from webhook.sandbox.binaries import obtain_binaries
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import Webhook, mutating_webhook_configuration, start_webhook

POLICIES: Final = 20
MATCHING: Final = 3
SIZES: Final = (10_000, 2_000)
AGENT: Final = "fairlead-bench"

NONE: Final = "none"
FLOOR: Final = "floor"
POLICY: Final = "policy"
CONSTANT: Final = "constant"
FAIRLEAD: Final = "fairlead"
# Each arm's namespace; Fairlead's is the one that the policies name.
NAMESPACES: Final = {
    NONE: "untouched",
    FLOOR: "floor",
    POLICY: "policy",
    CONSTANT: "constant",
    FAIRLEAD: reviews.NAMESPACE,
}
ARMS: Final = tuple(NAMESPACES)

_COMPONENTS: Final = ("etcd", "kube-apiserver", "kube-controller-manager")
_REVIEW_UID: Final = "0df28fbd-5f0a-4c3c-9d43-9a3c1f9a0f11"


@dataclass(frozen=True)
class Arena:
    """The API server with everything set up.

    `requests` are the bytes of a creation, by arm and size; `review` those of a review of a pod of
    SIZES[0], which can be posted to the webhooks directly.
    """

    plane: ControlPlane
    webhook: Webhook
    floor_port: int
    requests: dict[tuple[str, int], bytes]
    review: bytes

    def connect(self) -> Connection:
        """A connection to the API server, as its administrator."""
        return to_api_server(self.plane)

    def connect_directly(self, arm: str) -> Connection:
        """A connection to the webhook of FLOOR or FAIRLEAD."""
        if arm == FLOOR:
            return to_webhook(self.floor_port, self.plane.layout.credentials / "ca.crt")
        return to_webhook(port_of(self.webhook.url), self.webhook.authority)


def administrator(plane: ControlPlane) -> ssl.SSLContext:
    """What a TLS client needs to be the API server's administrator."""
    pki = plane.layout.credentials
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context


def to_api_server(plane: ControlPlane) -> Connection:
    """A connection to the API server, as its administrator."""
    return Connection(plane.layout.ports["kube-apiserver"], administrator(plane))


def port_of(url: str) -> int:
    """The port in a webhook's URL."""
    return int(url.rpartition(":")[2].partition("/")[0])


def to_webhook(port: int, authority: Path) -> Connection:
    """A connection to a webhook on this machine."""
    return Connection(port, ssl.create_default_context(cafile=str(authority)))


@contextlib.contextmanager
def serving(
    components: Sequence[str],
    progress: Progress,
    extra_arguments: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[tuple[ControlPlane, Webhook]]:
    """A control plane, and `fairlead serve` beside it with 20 policies of which three match."""
    binaries = obtain_binaries(components, progress)
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        folder = Path(directory) / "policies"
        folder.mkdir()
        for name, content in files(POLICIES, MATCHING).items():
            (folder / name).write_bytes(content)
        with progress.step("starting an API server and the webhook", about=6):
            settings = Settings(components=components, extra_arguments=extra_arguments)
            plane = ControlPlane(Path(directory) / "state", binaries, settings)
            stack.enter_context(plane)
            for namespace in NAMESPACES.values():
                plane.create_namespace(namespace, reviews.NAMESPACE_LABELS)
            webhook = start_webhook(plane, folder, namespaces=(reviews.NAMESPACE,))
        yield plane, webhook


@contextlib.contextmanager
def arena(progress: Progress) -> Iterator[Arena]:
    """Set everything up, and prove that all arms but NONE make the same pod of the same pod."""
    fixed = fixed_webhook.obtain()
    with serving(_COMPONENTS, progress) as (plane, webhook):
        sent = reviews.review(reviews.as_sent(pods.manifest(SIZES[0])), _REVIEW_UID)
        with to_webhook(port_of(webhook.url), webhook.authority) as connection:
            answer = orjson.loads(connection.must(post("/mutate", sent, AGENT)))["response"]
        patch: list[Any] = orjson.loads(base64.b64decode(answer["patch"]))
        port = fixed_webhook.start(plane, fixed, patch)
        configuration = mutating_webhook_configuration(
            f"https://127.0.0.1:{port}/mutate",
            (plane.layout.credentials / "ca.crt").read_bytes(),
            only_namespaces=(NAMESPACES[FLOOR],),
            name=fixed_webhook.NAME,
        )
        group = "/apis/admissionregistration.k8s.io/v1"
        plane.api.create(f"{group}/mutatingwebhookconfigurations", configuration)
        stamp = patch[0]["value"][names.PLACEMENT]
        for policy in (
            mutating_policy.equivalent(POLICY, NAMESPACES[POLICY], stamp),
            mutating_policy.constant(CONSTANT, NAMESPACES[CONSTANT], patch),
        ):
            mutating_policy.create(plane, policy)
        for size in SIZES:
            _prove(plane, pods.manifest(size), ARMS)
        # One that is placed differently shows that the policy's conditions are the policies' too.
        _prove(plane, pods.with_own_placement(), (NONE, POLICY, FAIRLEAD))
        requests = {
            (arm, size): post(_path(arm), orjson.dumps(pods.manifest(size)), AGENT)
            for arm in ARMS
            for size in SIZES
        }
        yield Arena(plane, webhook, port, requests, post("/mutate?timeout=3s", sent, AGENT))


def _path(arm: str) -> str:
    return f"/api/v1/namespaces/{NAMESPACES[arm]}/pods?dryRun=All"


def _prove(plane: ControlPlane, manifest: dict[str, Any], arms: Sequence[str]) -> None:
    """Wait until the arms have effect. Raises SandboxError if they do not agree in the end."""
    made: dict[str, Any] = {}

    def agree() -> bool:
        for arm in arms:
            status, pod = plane.api.call("POST", _path(arm), manifest)
            made[arm] = _comparable(pod) if status == 201 else pod
        return made[NONE] != made[FAIRLEAD] and all(
            made[arm] == made[FAIRLEAD] for arm in arms if arm != NONE
        )

    def differing() -> str:
        wanted = made[FAIRLEAD].get("spec", {})
        return "\n".join(
            f"{arm}: {key}: {orjson.dumps(value).decode()[:500]}"
            for arm in arms[1:]
            for key, value in made[arm].get("spec", made[arm]).items()
            if wanted.get(key) != value or arm == FAIRLEAD
        )

    deadline = time.monotonic() + 30
    wait_until("all arms to make the same pod", agree, lambda: None, deadline, differing)


def _comparable(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod without what differs from one creation to the next."""
    metadata = {
        key: value
        for key, value in pod["metadata"].items()
        if key in {"labels", "annotations", "generateName"}
    }
    if names.PLACEMENT in metadata.get("annotations", {}):
        # Provenance depends on what the pod had before, which a constant text cannot tell.
        metadata["annotations"][names.PLACEMENT] = ""
    spec = pod["spec"]
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        container.pop("volumeMounts", None)
    # The token volume's name is random, and it comes last.
    spec["volumes"] = spec["volumes"][:-1]
    return {"metadata": metadata, "spec": spec}
