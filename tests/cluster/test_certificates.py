"""The keeper of certificates beside the real API server: what it makes, and what it heals."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.cluster.keepers import ENTRIES, Site, entry
from tests.cluster.spaces import Json
from webhook import names
from webhook.controller.certificates.certificate_objects import bundles
from webhook.kube.client import connect
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

GARBAGE = b64encode(b"garbage").decode()


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str) -> Iterator[Site]:
    """An installation without certificates."""
    site = Site.of(control_plane, namespace)
    site.configure()
    yield site
    site.unconfigure()


def test_three_keepers_that_begin_at_once_make_one_authority(site: Site) -> None:
    """Whoever is quicker goes on, and the others see that nothing is left to do."""

    async def work() -> None:
        async with site.keeper() as one, site.keeper() as two, site.keeper() as three:
            await asyncio.gather(*(site.until_steady(each) for each in (one, two, three)))

    asyncio.run(work())
    site.is_sound()
    authority = site.authority()
    assert authority
    assert authority.signing
    (only,) = set(site.published().values())
    assert only == authority.signing.certificate
    secret = site.secret(site.installation.serving)
    assert secret
    assert secret["type"] == "kubernetes.io/tls"


def test_two_keepers_may_rotate_at_once(site: Site) -> None:
    """Though both believe to lead: each write holds for what was read, and nobody is refused."""
    site.deploy()
    site.settle()
    before = site.authority()
    site.ask_to_rotate(site.installation.authority)

    async def work() -> None:
        async with connect(site.plane.kubeconfig) as client:
            check = partial(site.nobody_is_refused, client)
            keepers = [site.keeper_of(client, client) for _ in range(2)]
            await asyncio.gather(*(site.until_steady(each, check) for each in keepers))

    asyncio.run(work())
    site.is_sound()
    after = site.authority()
    assert before
    assert after
    assert before.signing != after.signing


def test_the_bundle_is_all_that_it_owns(site: Site) -> None:
    """Whoever applies the manifests keeps everything else, and may apply them again."""
    site.settle()
    (ours,) = (
        each
        for each in site.configuration()["metadata"]["managedFields"]
        if each["manager"] == names.CERTIFICATES_MANAGER
    )
    assert ours["operation"] == "Apply"
    bundle: Json = {".": {}, "f:name": {}, "f:clientConfig": {"f:caBundle": {}}}
    owned = {f'k:{{"name":"{name}"}}': bundle for name in ENTRIES}
    assert ours["fieldsV1"] == {"f:webhooks": owned}


def test_what_judges_policies_is_believed_as_what_places_pods(site: Site) -> None:
    """The validating configuration of the same name gets the same bundle, and keeps the rest."""
    _, judging = site.installation.places
    body = {**site.manifest(), "kind": judging.kind}
    site.plane.api.create(judging.collection, body)
    site.settle()
    stored = site.plane.api.get(judging.path)
    assert bundles(stored, site.installation) == site.published()
    wiped = [
        {**each, "clientConfig": body["webhooks"][0]["clientConfig"]} for each in stored["webhooks"]
    ]
    site.plane.api.call("PUT", judging.path, {**stored, "webhooks": wiped})
    site.settle()
    assert site.plane.api.get(judging.path)["webhooks"] == stored["webhooks"]
    site.plane.api.call("DELETE", judging.path)


def test_only_entries_that_call_our_service_get_the_bundle(site: Site) -> None:
    """Another Service, or a url, is somebody else's."""
    service = {"namespace": site.installation.namespace, "name": "another"}
    body = site.manifest()
    body["webhooks"] += [
        entry("another.fairlead.dev", {"service": service}),
        entry("url.fairlead.dev", {"url": "https://198.18.0.9/mutate"}),
    ]
    site.unconfigure()
    site.plane.api.create(site.place.collection, body)
    site.settle()
    with_bundle = [
        each["name"]
        for each in site.configuration()["webhooks"]
        if "caBundle" in each["clientConfig"]
    ]
    assert with_bundle == list(ENTRIES)


def test_entries_may_join_and_leave(site: Site, cluster_kubectl: Kubectl) -> None:
    """`kubectl apply` leaves the bundle of those that stay; those that join get it too."""
    site.unconfigure()
    for entries in (ENTRIES, ENTRIES[:1], (*ENTRIES, "three.fairlead.dev")):
        cluster_kubectl("apply", "-f", "-", stdin=json.dumps(site.manifest(*entries)))
        kept = site.published()
        site.settle()
        site.is_sound()
        assert list(site.published()) == list(entries)
        assert entries == ENTRIES or kept[ENTRIES[0]] == site.published()[ENTRIES[0]]


def test_certificates_are_made_before_there_is_a_configuration(site: Site) -> None:
    """The webhook serves first; once it is registered, the bundle comes."""
    site.unconfigure()
    site.settle()
    before = site.authority()
    site.configure()
    site.settle()
    site.is_sound()
    assert site.authority() == before


def test_a_bundle_that_was_wiped_is_written_again(site: Site, cluster_kubectl: Kubectl) -> None:
    """By `kubectl replace` of what the manifests say, which have none."""
    site.settle()
    before = site.published()
    cluster_kubectl("replace", "-f", "-", stdin=json.dumps(site.manifest()))
    assert set(site.published().values()) == {b""}
    site.settle()
    assert site.published() == before


BROKEN: dict[str, Callable[[Site, str], None]] = {
    "deleted": lambda site, name: site.delete(name),
    "another certificate": lambda site, name: site.garble(name, tls_crt=GARBAGE),
    "another key": lambda site, name: site.garble(name, tls_key=GARBAGE),
    "emptied": lambda site, name: site.garble(name, tls_crt="", tls_key="", ca_crt=""),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("broken", [["serving"], ["authority"], ["serving", "authority"]])
def test_broken_secrets_are_recreated_without_a_failed_handshake(
    site: Site, broken: list[str], how: str
) -> None:
    """The authority that is there makes a new leaf.

    Another authority joins the bundle, in which the one before stays until no replica serves by it.
    """
    site.deploy()
    site.settle()
    before = site.authority()
    for each in broken:
        BROKEN[how](site, getattr(site.installation, each))
    watched_until_steady(site)
    site.is_sound()
    assert (site.authority() == before) == ("authority" not in broken)


KINDS = {
    "Opaque": {"anything": GARBAGE},
    "kubernetes.io/tls": {"tls.crt": GARBAGE, "tls.key": GARBAGE},
    "kubernetes.io/basic-auth": {"username": GARBAGE},
    "kubernetes.io/ssh-auth": {"ssh-privatekey": GARBAGE},
    "kubernetes.io/dockerconfigjson": {".dockerconfigjson": b64encode(b"{}").decode()},
    "example.invalid/own": {"anything": GARBAGE},
}


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_of_any_type_are_healed_where_they_are(site: Site, kind: str) -> None:
    """A type cannot be changed; it is left, with the keys that it asks for, and nothing deleted."""
    for name in (site.installation.authority, site.installation.serving):
        site.write(name, KINDS[kind], kind)
    before = site.secret(site.installation.serving)
    site.settle()
    site.is_sound()
    after = site.secret(site.installation.serving)
    assert before
    assert after
    assert (after["type"], after["metadata"]["uid"]) == (kind, before["metadata"]["uid"])


def test_an_immutable_secret_is_reported_with_the_cure(site: Site) -> None:
    """Only a person may delete it; then it is made again."""
    site.write(site.installation.serving, {}, immutable=True)
    asyncio.run(says(site, "delete it"))
    site.delete(site.installation.serving)
    site.settle()
    site.is_sound()


def test_what_is_not_the_certificates_own_stays_in_a_secret(site: Site) -> None:
    """Labels, annotations and keys of others; the request itself goes, for it is answered."""
    site.settle()
    before = site.serving()
    name = site.installation.serving
    secret = site.secret(name)
    assert secret
    secret["metadata"].update(labels={"team": "ours"}, annotations={"note": "mind the step"})
    secret["data"]["note"] = GARBAGE
    site.plane.api.call("PUT", site.installation.secret(name), secret)
    site.ask_to_rotate(name)
    site.settle()
    after = site.secret(name)
    assert after
    assert after["metadata"]["labels"] == {"team": "ours"}
    assert after["metadata"]["annotations"] == {"note": "mind the step"}
    assert after["data"]["note"] == GARBAGE
    assert site.serving() != before


def watched_until_steady(site: Site) -> None:
    """Bring everything in order; after each look nobody is refused."""

    async def work() -> None:
        async with connect(site.plane.kubeconfig) as client:
            check = partial(site.nobody_is_refused, client)
            await site.until_steady(site.keeper_of(client, client), check)

    asyncio.run(work())


async def says(site: Site, said: str) -> None:
    """A keeper goes on trying, and says why it does not get on."""
    async with site.keeper() as keeper:
        while said not in keeper.reason:
            await keeper.take_step()
