"""The demo without a cluster: `fairlead serve` as a process, and the API server's part by us."""

from __future__ import annotations

import base64
import contextlib
import copy
import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import jsonpatch

from webhook.cli.demo.admitted import Admitted
from webhook.cli.demo.examples import NAMESPACE, NAMESPACE_FILE, POLICIES, Example
from webhook.cli.demo.whole_run import Ran, pods_of
from webhook.errors import ServingError
from webhook.sandbox.processes import Lifeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan

_HOST: Final = "127.0.0.1"
_PATIENCE: Final = 30.0  # seconds for one answer, or for the end
_PODS: Final = {"group": "", "version": "v1", "resource": "pods"}
_POD: Final = {"group": "", "version": "v1", "kind": "Pod"}


class Loopback:
    """The webhook at `url`, over one TLS connection that trusts its authority alone."""

    def __init__(self, port: int, authority: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        self._connection = http.client.HTTPSConnection(
            _HOST, port, timeout=_PATIENCE, context=context
        )
        self._connection.connect()
        self._socket: ssl.SSLSocket = self._connection.sock
        self.url = f"https://{_HOST}:{port}/mutate"

    @property
    def tls(self) -> str:
        """The protocol that was agreed on."""
        return str(self._socket.version())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def admit(self, example: Example) -> Admitted:
        """Ask the webhook about the example, and do with its answer what the API server does.

        Raises ServingError if the answer is no decision.
        """
        pod = example.pod()
        review = review_of(example, str(uuid.uuid4()))
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/mutate", json.dumps(review), headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise ServingError(f"{example.name}: {answer.status} {body.decode(errors='replace')}")
        response = json.loads(body)["response"]
        warnings = response.get("warnings", ())
        if not response["allowed"]:
            return Admitted(pod, None, response["status"]["message"], warnings)
        patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        return Admitted(pod, jsonpatch.apply_patch(copy.deepcopy(pod), patch), warnings=warnings)

    def ran(self, plan: Plan) -> Ran:
        """Ask about each pod that the controller would make."""
        examples = [Example(pod) for pod in pods_of(plan)]
        return Ran({example.name: self.admit(example) for example in examples})


def review_of(example: Example, uid: str) -> JsonObject:
    """The AdmissionReview that an API server would send for the example's pod."""
    pod = example.pod()
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": _POD,
            "resource": _PODS,
            "requestKind": _POD,
            "requestResource": _PODS,
            "name": pod["metadata"].get("name", ""),
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "userInfo": {"username": example.user, "groups": ["system:authenticated"]},
            "object": pod,
            "oldObject": None,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    }


@contextlib.contextmanager
def loopback(
    policies: Path = POLICIES, namespace_file: Path = NAMESPACE_FILE
) -> Iterator[Loopback]:
    """Run the webhook over the policies; afterwards neither process nor file is left.

    Raises ServingError if it does not come up.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-demo-")))
        authority = folder / "ca.crt"
        lifeline = Lifeline()
        stack.callback(lifeline.cut)
        process = subprocess.Popen(  # noqa: S603
            [
                *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
                *("--policies", policies, "--namespaces", namespace_file),
                *("--host", _HOST, "--port", "0", "--health-port", "0"),
                *("--self-signed", "--ca-out", authority, "--grace", "0"),
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Not where we were started, where another `webhook` may be.
            cwd=folder,
            process_group=lifeline.group,
        )
        stack.callback(_end, process)
        server = Loopback(_port(process), authority)
        stack.callback(server.close)
        yield server


def _port(process: subprocess.Popen[str]) -> int:
    """The port that the process serves on, as its log tells."""
    said = []
    # The rest of the log, a few lines, stays in the pipe.
    for text in process.stderr or ():
        said.append(text)
        if text.startswith("{") and (line := json.loads(text))["message"] == "serving":
            return int(line["port"])
    raise ServingError(f"the webhook ended before it served:\n{''.join(said[-10:])}".rstrip())


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stderr:
        process.stderr.close()
