"""Measures writes of policies: one until all replicas serve by it, and many by one kubectl."""

from __future__ import annotations

import base64
import contextlib
import random
import resource
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import orjson

from tests.bench import arena, policy_arena, reviews
from tests.bench.client import Connection, patch
from tests.bench.process import cpu_ms
from tests.objects import an_object
from webhook import names, validating
from webhook.judgement.reporting.conditions import ACCEPTED, SATISFIABLE
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.api import install_definitions, wait_until
from webhook.sandbox.binaries import obtain_kubectl
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl

if TYPE_CHECKING:
    from webhook.progress import Progress
    from webhook.sandbox.control_plane import ControlPlane

POLICIES: Final = 1000
REPLICAS: Final = 3
_KEY: Final = "example.com/write"
_VALIDATING: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
# Seconds between two looks at one replica, and the longest that one write may take.
_LOOK: Final = 0.005
_LONGEST: Final = 60.0
# Seconds until a controller that has just started has written a status of each policy.
_UNTIL_STATUSES: Final = 300.0
# Before each write a pause of up to this, so that writes keep no step with anything.
_PAUSE: Final = 0.3
_CONTROLLER: Final = "controller"
_REPLICA: Final = "replica"
# What a table calls a process.
_NAMES: Final = {_REPLICA: "webhook", "kube-apiserver": "API server"}


@dataclass(frozen=True)
class WritesResult:
    """Milliseconds from the moment before the write is sent, one figure a write.

    answered: until the API server has answered, and so has had the write judged
    first:    until one replica serves by it; every: until all of them do
    """

    policies: int
    replicas: int
    answered: list[float]
    first: list[float]
    every: list[float]


@dataclass(frozen=True)
class BurstResult:
    """One `kubectl apply --server-side` of many policies.

    failed: how many it reports as failed; the others are applied, one after the other
    processor: seconds of processor time of each process
    """

    policies: int
    written: int
    failed: int
    seconds: float
    processor: Mapping[str, float]


def burst(policies: int, written: int, progress: Progress) -> BurstResult:
    """Apply `written` policies to a cluster of `policies`, beside a webhook and a controller.

    All policies that are there have a status: a new controller writes 50 of them a second.
    """
    with policy_arena.api_server(progress) as plane:
        with progress.step(f"{policies} policies, a webhook and a controller", about=60):
            policy_arena.store(plane, policies)
            install_definitions(plane.api, [custom_resource_definition()])
            plane.create_namespace(names.NAMESPACE)
            webhook = policy_arena.replica(plane, _REPLICA, None)
            _have_judged(plane, webhook)
            start_controller(plane, name=_CONTROLLER, options=("--no-leader-election",))
            wait_until(
                "all policies to have a status",
                lambda: _all_have_a_status(plane),
                lambda: None,
                time.monotonic() + _UNTIL_STATUSES,
            )
        more = policy_arena.documents(policies + written)[-written:]
        text = "\n".join(orjson.dumps(each).decode() for each in more)
        kubectl = Kubectl(obtain_kubectl(progress), plane.kubeconfig)
        before = _processor(plane)
        began = time.perf_counter()
        done = kubectl.run("apply", "--server-side", "-f", "-", stdin=text)
        seconds = time.perf_counter() - began
        used = {name: after - before[name] for name, after in _processor(plane).items()}
        applied = done.stdout.count("serverside-applied")
        return BurstResult(policies, written, written - applied, seconds, used)


def _processor(plane: ControlPlane) -> dict[str, float]:
    """Return the seconds of processor time of each process so far; kubectl's, once it has ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = {_NAMES.get(name, name): cpu_ms(pid) / 1000 for name, pid in plane.pids.items()}
    return {**running, "kubectl": ended.ru_utime + ended.ru_stime}


def measure(
    policies: int, writes: int, progress: Progress, say: Callable[[str], None]
) -> WritesResult:
    """Write one of so many policies again and again, beside REPLICAS serving processes.

    One replica judges the writes, as the validating configuration has it.
    """
    result = WritesResult(policies, REPLICAS, [], [], [])
    with policy_arena.api_server(progress) as plane, contextlib.ExitStack() as stack:
        with progress.step(f"{policies} policies, {REPLICAS} replicas", about=20):
            policy_arena.store(plane, policies - 1)
            administrator = stack.enter_context(arena.to_api_server(plane))
            path = policy_arena.collection(names.POLICY_KIND)
            policy_arena.create(administrator, path, [written("w0")])
            replicas = [
                policy_arena.replica(plane, f"replica-{at}", None) for at in range(REPLICAS)
            ]
            _have_judged(plane, replicas[0])
            connections = [stack.enter_context(each.connect()) for each in replicas]
        pool = stack.enter_context(ThreadPoolExecutor(REPLICAS))
        review = policy_arena.review(2_000)
        for at in range(1, writes + 1):
            time.sleep(random.uniform(0, _PAUSE))
            value = f"w{at}"
            body = orjson.dumps(written(value))
            change = patch(f"{path}/written", body, arena.AGENT)
            began = time.perf_counter()
            waits = [pool.submit(serves, each, review, value) for each in connections]
            administrator.must(change)
            answered = time.perf_counter()
            seen = [wait.result() for wait in waits]
            result.answered.append((answered - began) * 1000)
            result.first.append((min(seen) - began) * 1000)
            result.every.append((max(seen) - began) * 1000)
            if at % 50 == 0:
                say(f"{at} writes: {max(result.every):.0f} ms at most")
    return result


def written(value: str) -> policy_arena.Json:
    """The policy that is written: the pods of reviews get this value."""
    return an_object(
        names.API_VERSION,
        names.POLICY_KIND,
        "written",
        {
            "match": {"namespaces": [reviews.NAMESPACE]},
            "overrides": {"annotations": {_KEY: value}},
        },
    )


def value_in(answer: bytes) -> str:
    """What an answer to a review gives the pod by the policy; "" if nothing."""
    text = orjson.loads(answer)["response"].get("patch", "")
    for operation in orjson.loads(base64.b64decode(text) or b"[]"):
        added = operation.get("value")
        if isinstance(added, dict) and _KEY in added:
            return str(added[_KEY])
        if operation["path"].endswith("/example.com~1write"):
            return str(added)
    return ""


def serves(connection: Connection, review: bytes, value: str) -> float:
    """Ask until the answer goes by the policy of this value; when it did."""
    until = time.perf_counter() + _LONGEST
    while (now := time.perf_counter()) < until:
        status, answer = connection.ask(review)
        if status == HTTPStatus.OK and value_in(answer) == value:
            return time.perf_counter()
        time.sleep(_LOOK)
    raise RuntimeError(f"a replica does not serve {value} {now - until + _LONGEST:.0f} s later")


def _all_have_a_status(plane: ControlPlane) -> bool:
    listed = plane.api.get(policy_arena.collection(names.POLICY_KIND))["items"]
    found = [each.get("status", {}).get("conditions", ()) for each in listed]
    return all({ACCEPTED, SATISFIABLE} <= {each["type"] for each in listed} for listed in found)


def _have_judged(plane: ControlPlane, replica: policy_arena.Replica) -> None:
    """Have the API server send writes of policies to the replica; return once it does."""
    authority = replica.authority.read_bytes()
    configuration = {
        "metadata": {"name": names.WEBHOOK_CONFIGURATION},
        "webhooks": validating.webhooks(
            url=f"https://127.0.0.1:{replica.port}", ca_bundle=authority
        ),
    }
    plane.api.create(_VALIDATING, configuration)
    nowhere = {"capacity": [{"class": "of-nobody", "mode": "Prefer"}]}
    probe = {**written("w"), "metadata": {"name": "probe"}, "spec": {"defaults": nowhere}}
    path = f"{policy_arena.collection(names.POLICY_KIND)}?dryRun=All"
    wait_until(
        "writes to be judged",
        lambda: plane.api.call("POST", path, probe)[0] == HTTPStatus.FORBIDDEN,
        lambda: None,
        time.monotonic() + _LONGEST,
    )
