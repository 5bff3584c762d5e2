"""`fairlead run logs` through the real API server, from a kubelet that a test plays.

kwok has no containers, and so no logs: the API server asks a node whose kubelet is a server here.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from click.testing import CliRunner

from tests.cli.run.scripted_cluster import pod_object
from tests.control_planes import StartControlPlane
from tests.kube.fake_api import Answer, Request, fake_api
from tests.objects import an_object
from tests.ui.served_pages import page
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]
SMALL = Settings(components=("etcd", "kube-apiserver"))


@contextmanager
def kubelet(plane: ControlPlane, asked: list[Request]) -> Iterator[int]:
    """A kubelet's log endpoint; gives its port. worker-1's log does not end before it is asked."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pki = plane.layout.credentials
    tls.load_cert_chain(pki / "serving.crt", pki / "serving.key")
    started, ended = threading.Event(), threading.Event()
    port = 0

    async def logs(request: Request, answer: Answer) -> None:
        asked.append(request)
        pod = request.path.split("/")[3]
        await answer.begin()
        for number in range(3):
            await answer.chunk(f"{pod} line {number}\n".encode())
            await asyncio.sleep(0.05)
        await answer.end()

    async def serve() -> None:
        nonlocal port
        async with fake_api(logs, tls=tls) as api:
            port = urlsplit(api.url).port or 0
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait()
    try:
        yield port
    finally:
        ended.set()
        thread.join()


def stage(kubectl: Kubectl, port: int) -> None:
    """A Run that has ended, and two of its pods on the node of that kubelet."""

    def create(manifest: Json, status: Json) -> str:
        created = kubectl.json("create", "-f", "-", stdin=json.dumps(manifest))
        kind, name = created["kind"].lower(), created["metadata"]["name"]
        patch = json.dumps({"status": status})
        kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", patch)
        return str(created["metadata"]["uid"])

    node = an_object("v1", "Node", "node-1")
    address = {"type": "InternalIP", "address": "127.0.0.1"}
    endpoint = {"kubeletEndpoint": {"Port": port}}
    create(node, {"addresses": [address], "daemonEndpoints": endpoint})
    containers = [{"name": name, "image": "none"} for name in ("side", "main")]
    run = an_object(
        names.API_VERSION,
        names.RUN_KIND,
        "mnist",
        {
            "framework": "jax",
            "replicas": {"worker": {"count": 3}},
            "template": {"spec": {"containers": containers}},
        },
    )
    workers = {"worker": {"desired": 3, "succeededIndexes": "2"}}
    uid = create(run, {"phase": "Succeeded", "observedGeneration": 1, "replicas": workers})
    for index in range(2):
        pod = pod_object(f"worker-{index}", uid=uid)
        status = {"phase": "Succeeded"}
        pod["spec"]["containers"] = containers
        created = {"apiVersion": "v1", "kind": "Pod", **pod, "status": {}}
        del created["metadata"]["uid"]
        create(created, status)


def test_logs_come_through_the_api_server(
    start_control_plane: StartControlPlane, kubectl_for: Any
) -> None:
    """Of the main container, by replica; what is missing is said; options reach the kubelet."""
    plane = start_control_plane(SMALL)
    install_definitions(plane.api, [custom_resource_definition()])
    asked: list[Request] = []
    with kubelet(plane, asked) as port:
        stage(kubectl_for(plane), port)
        where = ("--kubeconfig", str(plane.kubeconfig), "-n", "default")

        def call(*options: str) -> Any:
            return CliRunner().invoke(fairlead, ["run", "logs", "mnist", *options, *where])

        done = call()
        assert done.stdout.splitlines() == [
            f"worker-{index} | mnist-worker-{index} line {number}"
            for index in range(2)
            for number in range(3)
        ]
        (line,) = done.stderr.splitlines()
        assert line.startswith("worker 2: succeeded")
        mentions(line, "pod is gone")
        assert done.exit_code == 0
        assert {request.path for request in asked} == {
            f"/containerLogs/default/mnist-worker-{index}/main" for index in range(2)
        }
        asked.clear()
        done = call("-f", "--index", "1", "-c", "side", "--tail", "7")
        assert len(done.stdout.splitlines()) == 3
        (request,) = asked
        assert request.path == "/containerLogs/default/mnist-worker-1/side"
        assert request.query == {"follow": "true", "tailLines": "7"}
        with page("cluster", *where) as served:
            served.enter()
            for index, says in (
                (1, "mnist-worker-1 line 2"),
                (2, "succeeded, and the pod is gone"),
                (9, "has no index 9"),
            ):
                shown = served.ask("GET", f"/runs/default/mnist/worker/{index}")
                assert shown.status == 200
                mentions(shown.text, says)
        done = call("-c", "absent")
        assert done.exit_code == 1
        assert "container absent is not valid for pod mnist-worker-0" in done.stderr
