"""The webhook of the demo: `fairlead serve` on loopback, which gets AdmissionReviews."""

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

from webhook.cli.demo.examples import (
    NAMESPACE,
    NAMESPACE_FILE,
    POLICIES,
    Admitted,
    Example,
    planned_pods,
)
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
    """The webhook at `url`, over one TLS connection that trusts only its authority."""

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
        """The negotiated protocol version."""
        return str(self._socket.version())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def admit(self, example: Example) -> Admitted:
        """Send the example to the webhook, and apply its answer as the API server does.

        Raises ServingError if the answer is not a decision.
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

    def run_plan(self, plan: Plan) -> dict[str, Admitted]:
        """Send each pod that the controller would create; the answers by the pods' names."""
        examples = [Example(pod) for pod in planned_pods(plan)]
        return {example.name: self.admit(example) for example in examples}


def review_of(example: Example, uid: str) -> JsonObject:
    """Return the AdmissionReview that an API server would send for the example's pod."""
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
    """Run the webhook with the policies; removes its process and files at the end.

    Raises ServingError if it does not start.
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
            # Not the current directory, which may have another `webhook`.
            cwd=folder,
            process_group=lifeline.group,
        )
        stack.callback(_end_process, process)
        server = Loopback(_port(process), authority)
        stack.callback(server.close)
        yield server


def _port(process: subprocess.Popen[str]) -> int:
    """Return the port of the process, from its log."""
    output = []
    # The rest of the log, a few lines, stays in the pipe.
    for text in process.stderr or ():
        output.append(text)
        if text.startswith("{") and (line := json.loads(text))["message"] == "serving":
            return int(line["port"])
    raise ServingError(f"the webhook ended before it served:\n{''.join(output[-10:])}".rstrip())


def _end_process(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stderr:
        process.stderr.close()
