"""The demo: objects and a Run, what `fairlead preview` says of their pods, and the webhook.

The webhook is `fairlead serve` on loopback. It gets AdmissionReviews over TLS.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import webhook
from webhook import names
from webhook.cli.exit_codes import TERMINATED
from webhook.cli.output import print_result, print_text
from webhook.errors import ServingError, UnreadableInput
from webhook.evaluation.result import result_of
from webhook.questions.decisions import decisions
from webhook.questions.offline import read_offline
from webhook.run_client.run_files import read_plans
from webhook.sandbox.processes import Lifeline
from webhook.text.changes import changes
from webhook.text.explanation import field_rows, fields_title, first_line, warning_lines
from webhook.text.layout import aligned, section, table, width, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.evaluation.replicas import Replicas
    from webhook.policy.policy_set import PolicySet

DATA: Final = Path(__file__).parent / "data"
NAMESPACE: Final = "research"
_HOST: Final = "127.0.0.1"
_ANSWER_TIMEOUT_SECONDS: Final = 30.0  # seconds for one answer, or for the end
_POD: Final = {"group": "", "version": "v1"}
_PERSON: Final = "you@example.com"
# Kubernetes' annotation for a description of an object.
_DESCRIPTION: Final = "kubernetes.io/description"


def run(output: str) -> None:
    """Show the demo. Raises ServingError."""
    # The webhook and its files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    objects = read_offline(
        [DATA / "pods.yaml"], [DATA / "policies"], NAMESPACE, DATA / "namespace.yaml"
    )
    (planned,) = read_plans([DATA / "run.yaml"], NAMESPACE, "")
    of_run = replace(objects, templates=planned.templates(objects.policies.sources))
    examples, pods = decisions(objects), decisions(of_run)
    with loopback() as server:
        print_text(output, _head(server, objects.policies))
        for number, replicas in enumerate(examples, 1):
            server.compare(replicas)
            print_text(output, _example(replicas, number))
        for replicas in pods:
            server.compare(replicas)
        print_text(output, _run(pods, len(examples) + 1))
        print_result(
            output,
            json=lambda: {
                "examples": [result_of(replicas).document() for replicas in examples],
                "run": [result_of(replicas).document() for replicas in pods],
            },
            text=lambda: _end([*examples, *pods]),
        )


def save(folder: Path) -> None:
    try:
        shutil.copytree(DATA, folder)
    except OSError as error:
        raise UnreadableInput([f"{folder}: {error.strerror}; name a new folder"]) from error
    click.echo(f"{folder} has the demo's policies, their tests, pods, a Run and the namespace")
    name = shlex.quote(str(folder))
    more = (
        (f"fairlead test {name}", "run the policies' tests"),
        (f"kubectl create -f {name}/namespace.yaml", "create their namespace"),
        (f"kubectl create -f {name}/pods.yaml -f {name}/run.yaml", "create the pods and the Run"),
    )
    print_text("text", ["", *_hints([*_commands(name), *more])])


def _head(server: Loopback, policies: PolicySet) -> Iterator[str]:
    yield click.style(f"Fairlead {webhook.__version__}: the demo without a cluster", bold=True)
    tls = server.connection.sock.version()
    yield from wrapped(
        f"The real webhook answers AdmissionReviews over {tls} at {server.url}. "
        "There is no API server: no pod is created or scheduled.",
        0,
    )
    yield ""
    yield click.style("Policies", bold=True)
    yield from aligned([[policy.name, policy.description] for policy in policies.policies], 2)


def _example(replicas: Replicas, number: int) -> Iterator[str]:
    yield ""
    yield _heading(number, replicas.template.source.metadata["annotations"][_DESCRIPTION])
    yield from changes(replicas)
    yield from section(fields_title(replicas.decision), field_rows(replicas.decision.trace))
    yield from warning_lines(replicas.warnings)


def _run(pods: Sequence[Replicas], number: int) -> Iterator[str]:
    yield ""
    yield _heading(number, "One file creates all pods of a run")
    for replicas in pods:
        yield from first_line(replicas)
        env = replicas.arrival.pod["spec"]["containers"][0]["env"]
        shown = {variable["name"]: variable.get("value") for variable in env}
        yield f"  first of them: RANK={shown['RANK']} WORLD_SIZE={shown['WORLD_SIZE']}"


def _end(compared: Sequence[Replicas]) -> Iterator[str]:
    count = sum(replicas.count for replicas in compared)
    yield ""
    yield from wrapped(
        f"The webhook gave all {count} answers as shown: `fairlead preview` and `fairlead explain` "
        "predict what it does.",
        0,
    )
    yield ""
    saved = ("fairlead demo --save demo", "write all of this to files")
    yield from _hints([saved, *_commands("demo")])


def _commands(name: str) -> list[tuple[str, str]]:
    options = f"--policies {name}/policies"
    return [
        (f"fairlead explain -f {name}/pods.yaml {options}", "show each result with its reasons"),
        (f"fairlead preview -o pods -f {name}/run.yaml {options}", "show the pods of the Run"),
        (f'eval "$(fairlead sandbox up {options})"', "start a cluster for your kubectl"),
    ]


def _hints(hints: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield click.style("Try next", bold=True)
    yield from table((), hints, 2)


def _heading(number: int, title: str) -> str:
    start = f"{number}  {title} "
    return click.style(start, bold=True) + click.style("─" * (width() - len(start)), dim=True)


class Loopback:
    """The webhook at `url`, over one TLS connection that trusts only its authority."""

    def __init__(self, port: int, authority: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        self.connection = http.client.HTTPSConnection(
            _HOST, port, timeout=_ANSWER_TIMEOUT_SECONDS, context=context
        )
        self.connection.connect()
        self.url = f"https://{_HOST}:{port}/mutate"

    def compare(self, replicas: Replicas) -> None:
        """Send each of the pods to the webhook, which has to decide as the evaluation.

        Raises ServingError.
        """
        decision, template = replicas.decision, replicas.template
        user = names.DAEMON_SET_CONTROLLER if template.count is None else _PERSON
        for index in replicas.all_indexes:
            answer = self._answer(template.pod(index), user)
            patch = json.loads(base64.b64decode(answer.get("patch", "") or b"W10="))
            reason = answer.get("status", {}).get("message", "")
            foreseen = list(decision.patch), "" if decision.allowed else decision.reason
            if (patch, reason) != foreseen:
                raise ServingError(
                    f"{replicas.subject}: the webhook answers {reason or patch}, and the "
                    f"evaluation {decision.reason or foreseen[0]}: this is a bug of Fairlead, "
                    "please report it"
                )

    def _answer(self, pod: dict[str, Any], user: str) -> dict[str, Any]:
        request = {
            "uid": str(uuid.uuid4()),
            "kind": {**_POD, "kind": "Pod"},
            "resource": {**_POD, "resource": "pods"},
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "userInfo": {"username": user, "groups": ["system:authenticated"]},
            "object": pod,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = json.dumps({**review, "request": request})
        self.connection.request("POST", "/mutate", body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != http.client.OK:
            raise ServingError(f"{answer.status} {content.decode(errors='replace')}")
        response: dict[str, Any] = json.loads(content)["response"]
        return response


@contextlib.contextmanager
def loopback(
    policies: Path = DATA / "policies", namespaces: Path = DATA / "namespace.yaml"
) -> Iterator[Loopback]:
    """Run the webhook with the policies; removes its process and files at the end.

    Raises ServingError if it does not start.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-demo-")))
        authority = folder / "ca.crt"
        lifeline = Lifeline()
        stack.callback(lifeline.cut)
        process = stack.enter_context(
            subprocess.Popen(  # noqa: S603
                [
                    *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
                    *("--policies", policies, "--namespaces", namespaces),
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
        )
        stack.callback(process.kill)
        server = Loopback(_port(process), authority)
        stack.callback(server.connection.close)
        yield server


def _port(process: subprocess.Popen[str]) -> int:
    output = []
    # The rest of the log, a few lines, stays in the pipe.
    for text in process.stderr or ():
        output.append(text)
        if text.startswith("{") and (line := json.loads(text))["message"] == "serving":
            return int(line["port"])
    raise ServingError(f"the webhook ended before it served:\n{''.join(output[-10:])}".rstrip())
