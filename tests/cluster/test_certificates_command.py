"""`fairlead webhook certs` beside the real API server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cluster.accounts import account, grant, grant_everywhere
from tests.cluster.keepers import ENTRIES, REPLICAS, Site
from tests.cluster.spaces import Json
from tests.wording import line_with, mentions
from webhook import names
from webhook.cli.webhook import command
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

Certs = Callable[..., Result]
CONFIGURATIONS: Json = {
    "apiGroups": ["admissionregistration.k8s.io"],
    "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
}


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str) -> Iterator[Site]:
    """An installation with certificates."""
    site = Site.of(control_plane, namespace)
    site.configure()
    site.settle()
    yield site
    site.unconfigure()


@pytest.fixture
def certs(site: Site) -> Certs:
    """`fairlead webhook certs`, as the administrator by default."""

    def call(*arguments: str, kubeconfig: Path = site.plane.kubeconfig) -> Result:
        where = (
            *("--namespace", site.installation.namespace),
            *("--webhook-configuration", site.place.name),
            *("--kubeconfig", str(kubeconfig)),
        )
        return CliRunner().invoke(command, [*arguments, *where])

    return call


@pytest.fixture
def reader(kubectl: Kubectl, tmp_path: Path) -> Callable[..., Path]:
    """A kubeconfig of somebody who may do this with these Secrets, and see configurations."""

    def make(*names: str, verbs: str = "get") -> Path:
        secrets = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": list(names)}
        grant(kubectl, "reader", "reader", {**secrets, "verbs": [verbs]})
        see = {**CONFIGURATIONS, "verbs": ["get"]}
        grant_everywhere(kubectl, "reader", f"reader-{kubectl.namespace}", see)
        return account(kubectl, "reader", tmp_path / "reader.kubeconfig")

    return make


def told(result: Result) -> Json:
    """The JSON that was printed."""
    document: Json = json.loads(result.stdout)
    return document


def test_status_tells_what_there_is(site: Site, certs: Certs) -> None:
    """The authority, the leaf by it, what every caBundle holds, and what is next."""
    authority, serving = site.authority(), site.serving()
    assert authority
    assert authority.signing
    assert serving
    signing = f"{authority.signing.check().serial_number:x}"
    result = certs("certs", "-o", "json")
    assert result.exit_code == 0, result.output
    document = told(result)
    assert document["authority"]["phase"] == "steady"
    assert document["authority"]["signing"]["serial"] == signing
    assert document["leaf"]["serial"] == f"{serving.leaf.check().serial_number:x}"
    assert document["leaf"]["signedBy"] == signing
    assert site.installation.server_name in document["leaf"]["names"]
    assert [each["name"] for each in document["webhooks"]] == list(ENTRIES)
    for each in document["webhooks"]:
        assert [one["serial"] for one in each["bundle"]] == [signing]
        assert (each["vouches"], each["asKept"]) == (True, True)
    assert document["next"].startswith("a new leaf, from ")
    assert document["findings"] == []
    text = certs("certs").stdout
    line_with(text, "authority: steady", "Secret fairlead-authority")
    assert text.count("fine") == 2
    assert "next: a new leaf" in text


def test_forbidden_objects_are_reported_and_the_rest_is_shown(
    site: Site, certs: Certs, reader: Callable[..., Path]
) -> None:
    """Without the authority's Secret: whom clients trust, and whether they trust the leaf."""
    kubeconfig = reader(site.installation.serving)
    result = certs("certs", kubeconfig=kubeconfig)
    assert result.exit_code == 0, result.output
    assert "authority: unknown" in result.stdout
    mentions(result.stdout, "may not read this Secret")
    assert result.stdout.count("fine") == 2
    document = told(certs("certs", "-o", "json", kubeconfig=kubeconfig))
    assert document["authority"]["visible"] is False
    assert document["authority"]["phase"] is None
    site.wipe()
    assert certs("certs", kubeconfig=kubeconfig).exit_code == 1


@pytest.mark.parametrize("authority", [False, True], ids=["leaf", "authority"])
def test_rotate_waits_until_what_it_asked_for_is_in_use(
    site: Site, certs: Certs, authority: bool
) -> None:
    """And says how far it has come."""
    site.deploy()
    before, leaf = site.authority(), site.serving()
    over = threading.Event()

    async def keep() -> None:
        async with site.keeper() as keeper:
            while not over.is_set():
                await site.until_steady(keeper)

    keeping = threading.Thread(target=lambda: asyncio.run(keep()))
    keeping.start()
    try:
        options = ("--authority",) if authority else ()
        result = certs("rotate", "--wait", "--timeout", "120s", *options)
    finally:
        over.set()
        keeping.join()
    what = "authority" if authority else "leaf"
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"requested a new {what}\n")
    assert result.stdout.endswith(f"done: a new {what} is in use\n")
    site.is_sound()
    assert site.serving() != leaf
    assert (site.authority() != before) == authority
    assert set(site.served) == set(REPLICAS)


def test_rotate_asks_and_does_not_wait(certs: Certs) -> None:
    """The request stands in the Secret until a controller takes it up, and status shows it."""
    result = certs("rotate", "--authority")
    assert result.exit_code == 0
    document = told(certs("certs", "-o", "json"))
    assert document["authority"]["asked"] is True
    assert document["leaf"]["asked"] is False
    mentions(document["next"], "a new authority", "on request")


def test_a_rotation_without_a_controller_reports_what_is_missing(certs: Certs) -> None:
    """After its time."""
    result = certs("rotate", "--wait", "--timeout", "1s")
    assert result.exit_code == 1
    mentions(result.stdout, "waiting for the controller")
    assert "--certificates" in str(result.exception)


def test_rotate_does_not_ask_for_what_cert_manager_keeps(site: Site, certs: Certs) -> None:
    """Nobody would take it up; it says who does, and leaves no request behind."""
    site.annotate(site.installation.serving, names.MADE_BY_CERT_MANAGER, "served")
    result = certs("rotate", "--wait")
    assert result.exit_code == 1
    assert f"cmctl -n {site.installation.namespace} renew served" in str(result.exception)
    kept = site.secret(site.installation.serving)
    assert kept
    assert names.ROTATE not in kept["metadata"]["annotations"]


def test_without_the_secret_or_the_right_rotate_says_so(
    site: Site, certs: Certs, reader: Callable[..., Path]
) -> None:
    """With what to do."""
    refused = certs("rotate", kubeconfig=reader(site.installation.serving))
    assert refused.exit_code == 1
    assert "may not patch secrets" in str(refused.exception)
    assert "ask an admin" in str(refused.exception)
    site.delete(site.installation.serving)
    absent: Any = certs("rotate").exception
    assert f"no Secret {site.installation.serving}" in str(absent)
    assert "-n" in str(absent)
