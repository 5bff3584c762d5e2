"""`fairlead serve` as a process of its own, over TLS on loopback."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import webhook
from certs.authority import new_authority
from certs.issue import Names, issue_server
from tests.admission.reviews import pod, review
from tests.admission.test_workload_handler import run, workers
from tests.cli import served as serving
from tests.cli.served import Served, ask, patch_of, pool_in, pool_policy, served
from tests.eventually import eventually
from tests.server.clients import client
from tests.wording import Wording, mentions
from webhook import names
from webhook.cli.exit_codes import FAILED, UNKNOWN
from webhook.server.serving_certificates import self_signed
from webhook.validating import WORKLOADS_PATH

NEVER = "3600"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "webhook-port.md"


def policies(folder: Path, text: str) -> Path:
    """Write the policies that a test begins with, and return their file."""
    file = folder / "policies" / "pool.yaml"
    file.parent.mkdir(exist_ok=True)
    rewrite(file, text)
    return file


def rewrite(file: Path, text: str) -> None:
    """Write it at once, as editors do: a file that is cut and not yet written has no policies."""
    fresh = file.parent.parent / "fresh"
    fresh.write_text(text)
    fresh.rename(file)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for the tests that change nothing."""
    folder = tmp_path_factory.mktemp("serve")
    policies(folder, pool_policy("a"))
    with served(folder, "--name", "webhook.example", "--name", "127.9.9.9") as running:
        yield running


def test_a_review_over_tls_is_answered(server: Served) -> None:
    """With the policies of the folder, on a connection that goes on."""
    connection = server.connect()
    for _ in range(3):
        response, body = ask(connection, review())
        assert response.status == 200
        assert pool_in(body) == "a"
        assert response.headers["Connection"] is None


def test_the_first_line_of_the_log_says_what_serves(server: Served) -> None:
    """Version, policies, the set's hash, and where it listens."""
    line = server.line("serving")
    assert line["version"] == webhook.__version__
    assert line["policies"] == 1
    assert len(line["set"]) == 64
    assert (line["host"], line["path"]) == ("127.0.0.1", "/mutate")
    assert 'fairlead_policy_set_info{hash="' + line["set"] in server.metrics()


def test_models_are_built_before_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model takes up to a tenth of a second, in which the event loop answers nobody."""
    program = (
        "import sys\nfrom pydantic import BaseModel\nbuild = BaseModel.model_rebuild.__func__\n"
        "def told(cls, **how):\n"
        "    print('builds', cls.__name__, file=sys.stderr, flush=True)\n"
        "    return build(cls, **how)\n"
        "BaseModel.model_rebuild = classmethod(told)\nfrom webhook.cli import main\nmain()"
    )
    monkeypatch.setattr(serving, "COMMAND", [sys.executable, "-c", program, "serve"])
    policies(tmp_path, pool_policy("a"))
    with served(tmp_path) as server:
        server.wait_ready()
        connection = server.connect()
        assert ask(connection, review(pod()))[0].status == 200
        workload = review(run(replicas=workers()))
        assert ask(connection, workload, path=WORKLOADS_PATH)[0].status == 200
        server.process.terminate()
        _, lines = server.end()
    start = lines.index("serving")
    assert "builds PlacementPolicy" in lines[:start]
    assert "builds Run" in lines[:start]
    assert [line for line in lines[start:] if line.startswith("builds")] == []


def test_readiness_names_every_condition(server: Served) -> None:
    """Each with its reason."""
    status, conditions = server.readiness()
    assert status == 200
    assert set(conditions) == {"policies", "certificate", "namespaces", "drain"}
    assert "loaded at" in conditions["policies"]["reason"]
    assert "until" in conditions["certificate"]["reason"]


def test_the_file_of_the_authority_is_replaced_in_one_step(tmp_path: Path) -> None:
    """Who waits for it never reads half of it: the old file stays whole until the new one is."""
    path = tmp_path / "ca.pem"
    path.write_text("old")
    with path.open() as before:
        self_signed(ca_out=path)
        assert before.read() == "old"
    assert path.read_text().startswith("-----BEGIN CERTIFICATE-----")
    assert list(tmp_path.iterdir()) == [path]


def test_the_self_signed_certificate_has_the_names_asked_for(server: Served) -> None:
    """Beside localhost, by name and by address."""
    connection = server.connect()
    connection.connect()
    certificate = connection.sock.getpeercert()
    assert certificate is not None
    assert set(certificate["subjectAltName"]) == {
        ("DNS", "localhost"),
        ("DNS", "webhook.example"),
        ("IP Address", "127.0.0.1"),
        ("IP Address", "0:0:0:0:0:0:0:1"),
        ("IP Address", "127.9.9.9"),
    }


def test_a_policy_that_is_edited_takes_effect_and_a_bad_edit_does_not(tmp_path: Path) -> None:
    """The last good set serves on, and readiness, log and metrics say so, until it is fixed."""
    file = policies(tmp_path, pool_policy("a"))
    with served(tmp_path) as server:
        connection = server.connect()
        rewrite(file, pool_policy("b"))
        server.line("policies loaded", 2)
        assert pool_in(ask(connection, review())[1]) == "b"

        rewrite(file, pool_policy("c").replace("nodeSelector", "nodeSelektor"))
        refused = server.line("policies refused, the last good ones serve on")
        assert "pool.yaml:5:19" in refused["error"]
        assert pool_in(ask(connection, review())[1]) == "b"
        conditions = server.wait_ready()
        assert "nodeSelektor" in conditions["policies"]["reason"]
        metrics = server.metrics()
        assert 'fairlead_policy_reload_total{outcome="refused"} 1.0' in metrics
        assert 'fairlead_refused{what="policies"} 1.0' in metrics

        rewrite(file, pool_policy("d"))
        server.line("policies loaded", 3)
        assert pool_in(ask(connection, review())[1]) == "d"
        assert "nodeSelektor" not in server.readiness()[1]["policies"]["reason"]
        assert 'fairlead_refused{what="policies"} 0.0' in server.metrics()


@pytest.mark.parametrize("first", ["nothing there", "an error"])
def test_policies_that_cannot_be_read_at_first_are_waited_for(tmp_path: Path, first: str) -> None:
    """Not ready, with the finding, and 503; ready as soon as they are good."""
    if first == "an error":
        policies(tmp_path, pool_policy("a").replace("defaults", "default"))
    with served(tmp_path) as server:
        server.line("policies refused, there are none to serve")
        assert server.line("serving")["policies"] is None
        status, conditions = server.readiness()
        assert status == 503
        assert not conditions["policies"]["ready"]
        says = {"an error": "pool.yaml:5:8", "nothing there": "no such file"}
        assert says[first] in conditions["policies"]["reason"]
        connection = server.connect()
        response, body = ask(connection, review())
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
        assert b"no policies" in body
        policies(tmp_path, pool_policy("a"))
        server.wait_ready()
        assert pool_in(ask(connection, review())[1]) == "a"


def test_an_empty_folder_is_a_set_of_no_policies(tmp_path: Path) -> None:
    """Pods of a run are stamped, and the log says that there was nothing to place them by."""
    (tmp_path / "policies").mkdir()
    with served(tmp_path) as server:
        assert server.line("serving")["policies"] == 0
        folder = tmp_path / "policies"
        server.line(f"no policies in {folder}: pods are stamped and left as they are")
        connection = server.connect()
        _, body = ask(connection, review())
    assert [operation["path"] for operation in patch_of(body)] == ["/metadata/annotations"]


def test_what_may_be_wrong_in_the_policies_is_logged(tmp_path: Path) -> None:
    """The same warnings as `fairlead check` prints."""
    host = pool_policy("a").replace("pool: a", f"{names.HOSTNAME_LABEL}: n1")
    policies(tmp_path, host)
    with served(tmp_path, "--grace", "0") as server:
        server.line("serving")
        server.process.send_signal(signal.SIGTERM)
        _, messages = server.end()
    assert any("warning" in message and "hostname" in message for message in messages)


def test_policies_with_a_fault_serve_and_an_alarm_counts_it(tmp_path: Path) -> None:
    """As a version before may have taken them: the log has each, and the metrics how many."""
    zones = [
        pool_policy(value, name).replace("defaults", "requirements")
        for value, name in (("a", "one"), ("b", "two"))
    ]
    policies(tmp_path, "---".join(zones))
    with served(tmp_path, "--grace", "0") as server:
        assert server.line("serving")["policies"] == 2
        assert "fairlead_policy_set_errors 1.0" in server.metrics()
        server.process.send_signal(signal.SIGTERM)
        _, messages = server.end()
    (line,) = [each for each in messages if each.startswith("policies serve with an error")]
    mentions(line, "every run", "one requires 'a'")


def test_a_set_with_a_fault_does_not_replace_a_good_one(tmp_path: Path) -> None:
    """What `fairlead check` rejects is refused; the last good set serves on."""
    file = policies(tmp_path, pool_policy("a"))
    with served(tmp_path) as server:
        connection = server.connect()
        assert pool_in(ask(connection, review())[1]) == "a"
        cost = "annotations: {controller.kubernetes.io/pod-deletion-cost: high}"
        rewrite(file, pool_policy("b").replace("nodeSelector: {pool: b}", cost))
        refused = server.line("policies refused, the last good ones serve on")
        mentions(refused["error"], "pod-deletion-cost", "'high'")
        assert pool_in(ask(connection, review())[1]) == "a"


def test_a_certificate_is_waited_for_and_followed(tmp_path: Path) -> None:
    """Not ready without one; each new pair is served from the next handshake on."""
    policies(tmp_path, pool_policy("a"))
    signer = new_authority("Test", datetime.now(UTC))
    authority = tmp_path / "authority.crt"
    authority.write_bytes(signer.certificate)
    files = ("--cert", str(tmp_path / "tls.crt"), "--key", str(tmp_path / "tls.key"))
    seen = []
    with served(tmp_path, certificate=files) as server:
        server.line("certificate refused, there are none to serve")
        status, conditions = server.readiness()
        assert (status, conditions["certificate"]["ready"]) == (503, False)
        assert 'fairlead_refused{what="certificate"} 1.0' in server.metrics()
        for count in (1, 2):
            pair = issue_server(signer, "t", Names(addresses=("127.0.0.1",)), datetime.now(UTC))
            # As a Secret's update does it: both are not there at the same instant.
            (tmp_path / "tls.key").write_bytes(pair.private_key)
            (tmp_path / "tls.crt").write_bytes(pair.certificate)
            server.line("certificate loaded", count)
            connection = server.connect(authority)
            connection.connect()
            certificate = connection.sock.getpeercert()
            assert certificate is not None
            seen.append(certificate["serialNumber"])
            assert ask(connection, review())[0].status == 200
        server.wait_ready()
        metrics = server.metrics()
        assert "fairlead_certificate_expiry_timestamp_seconds 1" in metrics
        assert 'fairlead_refused{what="certificate"} 0.0' in metrics
    assert len(set(seen)) == 2


def begin(connection: http.client.HTTPConnection, body: bytes) -> None:
    """Send a request up to the last byte of its body."""
    connection.putrequest("POST", "/mutate")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body[:-1])


def test_more_requests_in_flight_than_the_limit_are_told_to_retry(tmp_path: Path) -> None:
    """503 with Retry-After, counted; the ones in flight are answered, and then there is room."""
    policies(tmp_path, pool_policy("a"))
    # An API server that takes connections and says nothing, so that a live read has to wait.
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        kubeconfig = kubeconfig_for(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        cluster = ("--kubeconfig", str(kubeconfig))
        with served(tmp_path, "--max-in-flight", "1", cluster=cluster) as server:
            over = threading.Event()

            def wait_for_answers() -> None:
                waiting = server.connect()
                while not over.is_set():
                    assert ask(waiting, review(namespace="unknown"))[0].status == 503

            thread = threading.Thread(target=wait_for_answers)
            thread.start()
            other = server.connect()
            none_shed = 'fairlead_admission_requests_total{code="503",result="overloaded"} 0.0'
            assert none_shed in server.metrics()

            def shed_one() -> bool:
                response, body = ask(other, review())
                assert (response.status, response.headers["Retry-After"]) == (503, "1")
                return b"too many requests in flight" in body

            eventually("one is too many", shed_one, period=0)
            over.set()
            thread.join()
            assert none_shed not in server.metrics()
            assert b"too many requests in flight" not in ask(other, review())[1]


def lets_in(server: Served) -> bool:
    """Whether it takes connections."""
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except ConnectionError:
        return False
    return True


def wait_in_flight(server: Served) -> None:
    """Wait until the request that was begun has been taken."""
    one = "fairlead_admission_in_flight 1.0"
    eventually("the request is in flight", lambda: one in server.metrics())


def test_during_the_grace_time_it_answers_and_asks_callers_to_leave(tmp_path: Path) -> None:
    """Unready at once; standing, fresh and in-flight requests are answered as ever."""
    policies(tmp_path, pool_policy("a"))
    whole = json.dumps(review()).encode()
    with served(tmp_path, "--grace", NEVER) as server:
        standing, in_flight = server.connect(), server.connect()
        assert ask(standing, whole)[0].headers["Connection"] is None
        begin(in_flight, whole)
        wait_in_flight(server)
        server.process.send_signal(signal.SIGTERM)
        assert server.wait_ready(ready=False)["drain"]["reason"] == "draining"
        for connection in (standing, server.connect()):
            response, body = ask(connection, whole)
            assert (pool_in(body), response.headers["Connection"]) == ("a", "close")
        in_flight.send(whole[-1:])
        answer = in_flight.getresponse()
        assert (pool_in(answer.read()), answer.headers["Connection"]) == ("a", "close")


def test_after_the_grace_time_requests_in_flight_are_answered_and_it_ends(tmp_path: Path) -> None:
    """Nobody new is let in, nobody who is in is cut off, and the exit code is 0."""
    policies(tmp_path, pool_policy("a"))
    whole = json.dumps(review()).encode()
    with served(tmp_path, "--grace", "0.2") as server:
        in_flight = server.connect()
        begin(in_flight, whole)
        wait_in_flight(server)
        server.process.send_signal(signal.SIGTERM)
        # Not in a rush: connections could have the place of one whose request is not whole.
        eventually("nobody new is let in", lambda: not lets_in(server))
        # Longer than a goodbye takes: what is waited for is the request.
        time.sleep(1.5)
        # The plain port answers to the last.
        assert server.readiness()[0] == 503
        in_flight.send(whole[-1:])
        answer = in_flight.getresponse()
        assert (pool_in(answer.read()), answer.headers["Connection"]) == ("a", "close")
        code, messages = server.end()
    assert code == 0
    assert "requests cut off" not in messages


@pytest.mark.parametrize("grace", [NEVER, "0"])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, grace: str, wording: Wording) -> None:
    """Neither the grace time nor a request in flight holds it, and the exit code tells."""
    policies(tmp_path, pool_policy("a"))
    with served(tmp_path, "--grace", grace) as server:
        begin(server.connect(), json.dumps(review()).encode())
        wait_in_flight(server)
        server.process.send_signal(signal.SIGINT)
        server.wait_ready(ready=False)
        if grace == "0":
            eventually("nobody new is let in", lambda: not lets_in(server))
        server.process.send_signal(signal.SIGINT)
        code, messages = server.end()
    assert code == 1
    (message,) = (each for each in messages if "at once" in each)
    wording(message)


def test_the_api_servers_toleration_seconds_can_be_configured(tmp_path: Path) -> None:
    """They are nobody's word, so a policy's default replaces them; others are the pod's own."""
    policies(
        tmp_path,
        f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: patient}}
spec:
  defaults:
    tolerations:
      - key: {names.TAINT_UNREACHABLE}
        operator: Exists
        effect: NoExecute
        tolerationSeconds: 9
""",
    )

    def tolerating(seconds: int) -> dict[str, object]:
        toleration = {
            "key": names.TAINT_UNREACHABLE,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": seconds,
        }
        return review(pod(tolerations=[toleration]))

    with served(tmp_path, "--default-toleration-seconds", "77") as server:
        connection = server.connect()
        given = ask(connection, tolerating(77))[1]
        own = ask(connection, tolerating(300))[1]
    assert json.loads(given)["response"]["auditAnnotations"]["result"] == "placed"
    assert json.loads(own)["response"]["auditAnnotations"]["result"] == "unchanged"


def kubeconfig_for(folder: Path, server: str) -> Path:
    """A kubeconfig of nobody for an API server at this address."""
    file = folder / "kubeconfig"
    file.write_text(
        f"""
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {{}}}}]
"""
    )
    return file


def test_an_api_server_that_cannot_be_reached_is_waited_for(tmp_path: Path) -> None:
    """Not ready, with what goes wrong as the reason, and 503 for every pod; but alive."""
    policies(tmp_path, pool_policy("a"))
    kubeconfig = kubeconfig_for(tmp_path, "http://127.0.0.1:1")
    with served(tmp_path, cluster=("--kubeconfig", str(kubeconfig))) as server:
        while "127.0.0.1" not in str(conditions := server.readiness()[1]):
            pass
        assert not conditions["namespaces"]["ready"]
        assert not conditions["priority-classes"]["ready"]
        connection = server.connect()
        assert ask(connection, review())[0].status == 503
        assert 'fairlead_cache_age_seconds{resource="namespaces"} +Inf' in server.metrics()


def test_the_example_of_the_guide_admits_only_its_caller(tmp_path: Path) -> None:
    """The command of docs/guides/webhook-port.md, with files of this machine instead of a pod's.

    Its Secret is replaced by --self-signed; tests/cluster/test_tls_secret.py serves from a Secret.
    """
    ((shown),) = re.findall(r"```console\n\$ fairlead serve (.*?)```", GUIDE.read_text(), re.DOTALL)
    policies(tmp_path, pool_policy("a"))
    callers = new_authority("callers", datetime.now(UTC))
    (tmp_path / "callers.crt").write_bytes(callers.certificate)
    here = {
        "/etc/fairlead/policies": str(tmp_path / "policies"),
        "/etc/fairlead/callers/ca.crt": str(tmp_path / "callers.crt"),
    }
    shown = shown.replace("\\\n", " ").replace("--tls-secret fairlead-webhook-tls", "")
    words = shlex.split(shown)
    assert set(here) <= set(words)
    with served(tmp_path, *(here.get(word, word) for word in words), policies=()) as server:
        statuses = {}
        for name in ("api-server", "another"):
            file = tmp_path / f"{name}.pem"
            pair = client(callers, name)
            file.write_bytes(pair.certificate + pair.private_key)
            statuses[name] = ask(server.connect(caller=file), review())[0].status
        assert statuses == {"api-server": 200, "another": 403}
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(server.connect(), review())
        assert 'fairlead_refused{what="client authorities"} 0.0' in server.metrics()


def failed(folder: Path, *options: str, cluster: tuple[str, ...] | None = None) -> str:
    """What a process says that cannot serve."""
    policies(folder, pool_policy("a"))
    with served(folder, *options, cluster=cluster) as server:
        code, messages = server.end()
    assert code in (FAILED, UNKNOWN)
    assert messages[-1].startswith("error: ")
    return messages[-1]


def test_what_cannot_be_had_ends_it_with_the_reason(tmp_path: Path) -> None:
    """A port that is taken, a kubeconfig or a file of namespaces that cannot be read."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}" in failed(tmp_path, "--port", str(port))
    absent = str(tmp_path / "absent")
    assert absent in failed(tmp_path, cluster=("--kubeconfig", absent))
    assert absent in failed(tmp_path, cluster=("--namespaces", absent))
    assert "--ca-out" in failed(tmp_path, "--ca-out", f"{absent}/ca.crt")
