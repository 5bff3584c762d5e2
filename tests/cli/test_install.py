"""`fairlead install`, as far as it needs no cluster."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from certs.authority import new_authority
from tests.wording import Wording, mentions
from webhook import names
from webhook.cli import fairlead
from webhook.cli.install import agree
from webhook.cli.install_options import files_of
from webhook.errors import InstallationError, InvalidDocuments, UnreadableInput
from webhook.installation.manifests import overlays

Json = dict[str, Any]
POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: {name}}}
spec:
  defaults: {{nodeSelector: {{pool: a}}}}
"""


def manifests(*options: str) -> Result:
    """What would be applied, without a cluster."""
    return CliRunner().invoke(fairlead, ["generate", "manifests", *options])


def listed(*names: str) -> list[Json]:
    """What is generated of these overlays for programs."""
    options = [option for name in names for option in ("--overlay", name)]
    shown = manifests("-o", "json", *options)
    assert shown.exit_code == 0
    found: list[Json] = json.loads(shown.stdout)["items"]
    return found


def test_manifests_are_what_would_be_applied() -> None:
    """As YAML, or as one List; no cluster is asked for anything."""
    shown = manifests().stdout
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    assert list(yaml.load_all(shown, Loader=loader)) == listed()
    assert manifests("-o", "yaml").stdout == shown


@pytest.mark.parametrize("overlay", overlays())
def test_every_overlay_can_be_chosen(overlay: str) -> None:
    """With the definition of Runs first."""
    assert listed(overlay)[0]["kind"] == "CustomResourceDefinition"


def test_overlays_are_joined() -> None:
    """What is in both is there once."""

    def named(*overlays: str) -> list[tuple[str, str]]:
        return [(each["kind"], each["metadata"]["name"]) for each in listed(*overlays)]

    both = named("default", "monitoring")
    assert set(both) == {*named("default"), *named("monitoring")}
    assert len(both) == len(set(both))


def test_doctor_runs_in_the_cluster_by_one_option() -> None:
    """With its rights, and the guard that keeps it from more; the option holds the next time."""
    found = json.loads(manifests("-o", "json", "--doctor").stdout)["items"]
    own = {each["kind"] for each in found if each["metadata"]["name"] == names.DOCTOR}
    assert {"CronJob", "ServiceAccount", "ClusterRole", "ValidatingAdmissionPolicy"} <= own
    (controller,) = (
        each["metadata"]["annotations"]
        for each in found
        if (each["kind"], each["metadata"]["name"]) == ("Deployment", names.CONTROLLER)
    )
    assert controller[f"{names.INTERCEPTS}{names.DOCTOR}"] == "guard"
    assert json.loads(controller[names.INSTALL_OPTIONS])["components"] == ["doctor"]


def test_policies_get_names_that_a_config_map_can_have(tmp_path: Path) -> None:
    """Folders become parts of the name; files of tests stay behind."""
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "a.yaml").write_text(POLICY.format(name="a"))
    (tmp_path / "b.yaml").write_text(POLICY.format(name="b"))
    (tmp_path / "b.test.yaml").write_text("no matter")
    assert set(files_of(tmp_path)) == {"team-a.yaml", "b.yaml"}
    assert set(files_of(tmp_path / "b.yaml")) == {"b.yaml"}


def test_policies_that_are_wrong_are_refused(tmp_path: Path, wording: Wording) -> None:
    """So is a folder without any, and two files of one name."""
    with pytest.raises(UnreadableInput, match="no policies there"):
        files_of(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.yaml").write_text(POLICY.format(name="one"))
    (tmp_path / "a-b.yaml").write_text(POLICY.format(name="two"))
    with pytest.raises(UnreadableInput) as twice:
        files_of(tmp_path)
    mentions(str(twice.value), tmp_path, "a-b.yaml")
    wording(str(twice.value), {tmp_path: "TMP"})
    (tmp_path / "a-b.yaml").write_text(POLICY.format(name="two").replace("pool", "po ol"))
    with pytest.raises(InvalidDocuments, match=r"a-b\.yaml:6"):
        files_of(tmp_path)


@pytest.mark.parametrize("command", ["uninstall", "webhook disable", "webhook enable", "doctor"])
def test_every_command_has_examples_and_exit_codes(command: str) -> None:
    """And none needs a cluster for its help."""
    told = CliRunner().invoke(fairlead, [*command.split(), "--help"])
    assert told.exit_code == 0
    assert "Examples:" in told.stdout
    assert "Exit codes:" in told.stdout


def in_a_terminal(answer: str) -> tuple[int, str]:
    """The exit code and the screen, if the question about a loss gets this answer."""
    call = "from webhook.cli.install import agree; agree(['x is deleted'], yes=False)"
    screen, end = pty.openpty()
    with os.fdopen(screen, "r+b", buffering=0) as terminal, os.fdopen(end, "r+b", 0) as inside:
        terminal.write(answer.encode())
        done = subprocess.run([sys.executable, "-c", call], stdin=inside, stderr=subprocess.PIPE)
    return done.returncode, done.stderr.decode()


def test_ctrl_c_at_the_question_ends_the_command_at_once() -> None:
    """Also within asyncio, whose own handler waits for the answer; it is no answer."""
    call = "import asyncio; from webhook.cli.install import agree\nasync def ask():"
    call += "\n  agree(['x is deleted'], yes=False)\nasyncio.run(ask())"
    screen, end = pty.openpty()
    with os.fdopen(screen, "r+b", buffering=0), os.fdopen(end, "r+b", 0) as inside:
        asking = subprocess.Popen(
            [sys.executable, "-c", call], stdin=inside, stderr=subprocess.PIPE, text=True
        )
        assert asking.stderr
        with asking:
            shown = ""
            while "Go on?" not in shown:
                shown += asking.stderr.read(1)
            # One that comes before it reads is seen with the next.
            while asking.poll() is None:
                asking.send_signal(signal.SIGINT)
                time.sleep(0.2)
        assert asking.returncode == -signal.SIGINT


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_in_a_terminal_losses_are_asked_about(answer: str, code: int) -> None:
    """Only yes goes on."""
    found, screen = in_a_terminal(answer)
    assert found == code
    mentions(screen, "takes away or changes", "x is deleted", "Go on?")


def test_without_a_terminal_losses_are_refused_unless_they_are_agreed_to(wording: Wording) -> None:
    """Standard input of a script may be anything, and is not read."""
    with pytest.raises(InstallationError) as refused:
        agree(["x is deleted"], yes=False)
    wording(str(refused.value))
    agree(["x is deleted"], yes=True)


def test_of_the_file_of_an_authority_only_certificates_are_installed(tmp_path: Path) -> None:
    """A server's PEM often has the key, too; and what is no PEM is refused by its option."""
    pair = new_authority("fairlead", datetime.now(UTC))
    file = tmp_path / "both.pem"
    file.write_bytes(pair.certificate + pair.private_key)
    outside = ("--webhook-url", "https://127.0.0.1:1/mutate", "--webhook-ca", str(file))
    done = manifests("-o", "yaml", *outside)
    assert done.exit_code == 0, done.output
    bundles = re.findall(r"caBundle: (\S+)", done.stdout)
    assert {base64.b64decode(each) for each in bundles} == {pair.certificate}
    assert "PRIVATE KEY" not in done.output
    for text in (b"", b"garbage", b"\x30\x82"):
        file.write_bytes(text)
        done = manifests(*outside)
        assert done.exit_code == 2
        mentions(done.output, "--webhook-ca", "no certificates in PEM")


@pytest.mark.parametrize(
    "image", ["bad:image:x", "a b", "https://x/y:1", "x:", "x@sha256:abc", "Fairlead:1"]
)
def test_an_image_that_no_kubelet_reads_is_refused(image: str) -> None:
    """The API server takes any text, and the pods would not start."""
    done = manifests("--image", image)
    assert done.exit_code == 2
    mentions(done.output, "--image", "is not an image", "registry.example.com/fairlead:0.1.0")


@pytest.mark.parametrize(
    ("url", "facts"),
    [
        ("http://x:1/mutate", ["scheme is 'http'"]),
        ("https://x:99999/mutate", ["port is '99999'", "1 to 65535"]),
        ("https://x:0/mutate", ["port is '0'"]),
        ("https://:1/mutate", ["no host"]),
        ("https://[::1/mutate", ["not a URL"]),
        ("https://x y:1/mutate", ["blanks"]),
        ("https://x:1/other", ["path is '/other'"]),
        ("https://u:secret@x:1/a?b=c", ["a user or a password", "path is '/a'", "a query"]),
        ("https://x:1/mutate#a", ["a fragment"]),
    ],
)
def test_the_address_of_a_webhook_outside_is_one_that_the_api_server_takes(
    url: str, facts: list[str], tmp_path: Path
) -> None:
    """All that is wrong is named, and no password is repeated."""
    file = tmp_path / "ca.pem"
    file.write_bytes(new_authority("fairlead", datetime.now(UTC)).certificate)
    outside = ("--webhook-ca", str(file), "--webhook-url")
    done = manifests(*outside, url)
    assert done.exit_code == 2
    mentions(done.output, "--webhook-url", "want https://HOST:PORT/mutate", *facts)
    assert "secret" not in done.output
    for good in ("https://[::1]:8443/mutate", "https://a.example/behind/mutate"):
        assert manifests(*outside, good).exit_code == 0


def test_cert_manager_does_not_write_over_the_authority_of_a_webhook_outside(
    tmp_path: Path,
) -> None:
    """Its annotation would have it do so, whichever overlay has it."""
    file = tmp_path / "ca.pem"
    file.write_bytes(new_authority("fairlead", datetime.now(UTC)).certificate)
    outside = ("--webhook-url", "https://127.0.0.1:1/mutate", "--webhook-ca", str(file))
    done = manifests("--overlay", "cert-manager", *outside)
    assert isinstance(done.exception, InstallationError)
    mentions(str(done.exception), "--webhook-url", "--overlay cert-manager", "--reset")
