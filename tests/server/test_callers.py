"""Whoever has to show a certificate gets nothing without a good one, and 403 by a wrong name."""

from __future__ import annotations

import http.client
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from certs.pair import Pair
from tests.server.clients import client
from tests.server.serving import HOST, Running, authority, leaf, post, running
from tests.wording import Wording, mentions
from webhook.errors import ServingError
from webhook.server.callers import Callers
from webhook.server.files import AuthoritiesFile
from webhook.server.reload import Reloader
from webhook.server.tls import ServerTls

CLIENTS = authority()
NAMED = Callers(frozenset({"api-server", "other.example"}))


def certificate(common_name: str = "", dns: Sequence[str] = ()) -> dict[str, object]:
    """A certificate as getpeercert() tells of it."""
    subject = ((("organizationName", "o"),), (("commonName", common_name),))
    return {"subject": subject, "subjectAltName": tuple(("DNS", name) for name in dns)}


@pytest.mark.parametrize(
    "seen", [certificate("api-server"), certificate("x", ["a", "other.example"])]
)
def test_a_client_may_call_by_its_common_name_or_a_dns_name(seen: dict[str, object]) -> None:
    """Either is enough."""
    assert NAMED.refusal(seen) == ""


def test_a_client_by_another_name_is_told_whose_names_would_do(wording: Wording) -> None:
    """And its own; without any name asked for, whoever TLS let in may call."""
    refusal = NAMED.refusal(certificate("x", ["a.example"]))
    client, allowed = refusal.split("; ")
    mentions(client, "certificate", "x, a.example")
    mentions(allowed, "may call: api-server,")
    wording(refusal)
    assert "nobody" in NAMED.refusal({})
    assert Callers(frozenset()).refusal({}) == ""


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    """One that lets in clients by CLIENTS, and answers those of two names."""
    with running(clients=CLIENTS, callers=NAMED) as started:
        yield started


def connection(server: Running, pair: Pair | None) -> http.client.HTTPSConnection:
    """A connection that shows this certificate."""
    context = ssl.create_default_context(cadata=server.trust.certificate.decode())
    if pair:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pair.pem"
            file.write_bytes(pair.private_key + pair.certificate)
            context.load_cert_chain(file)
    return http.client.HTTPSConnection(HOST, server.https_port, context=context)


def answered(server: Running, pair: Pair | None) -> bool:
    """Whether a client with this certificate is answered at all."""
    calling = connection(server, pair)
    try:
        return post(calling, b"body").read() == b"body"
    except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
        return False
    finally:
        calling.close()


def test_only_clients_by_the_authority_get_in(server: Running) -> None:
    """None, another authority's, and a server's certificate are refused in the handshake."""
    assert answered(server, client(CLIENTS, "api-server"))
    assert not answered(server, None)
    assert not answered(server, client(authority(), "api-server"))
    assert not answered(server, leaf(CLIENTS))


def test_a_wrong_name_is_a_403_with_the_reason(server: Running) -> None:
    """The API server quotes it; the connection is closed."""
    calling = connection(server, client(CLIENTS, "somebody"))
    response = post(calling, b"body")
    assert (response.status, response.headers["Connection"]) == (403, "close")
    assert b"for somebody; may call: api-server, other.example" in response.read()
    calling.close()


def test_a_new_certificate_is_swapped_in_and_clients_are_asked_as_before(server: Running) -> None:
    """The contexts of all pairs trust the same clients."""
    pair = leaf(server.trust)
    served = server.tls.swap(pair.certificate, pair.private_key)
    assert server.tls.served == served
    assert answered(server, client(CLIENTS, "api-server"))
    assert not answered(server, None)


def test_before_any_authority_is_known_nobody_gets_in() -> None:
    """A file that is missing lets nobody in, rather than everybody."""
    with running(ask_clients=True) as server:
        assert not answered(server, client(CLIENTS, "api-server"))
        server.tls.trust_clients(CLIENTS.certificate)
        assert answered(server, client(CLIENTS, "api-server"))


def test_authorities_come_from_a_watched_file(tmp_path: Path) -> None:
    """Two of them, while one follows the other; a file that is wrong leaves those before."""
    file = tmp_path / "clients.crt"
    old, new = authority(), authority()
    with running(clients=old) as server:
        source = AuthoritiesFile(file)
        reloader = Reloader("client authorities", source, source.trust_in(server.tls))
        assert f"{file}: No such file" in reloader.poll().error
        file.write_bytes(old.certificate + new.certificate)
        assert reloader.poll().error == ""
        assert answered(server, client(old, "c"))
        assert answered(server, client(new, "c"))
        file.write_bytes(b"garbled")
        assert "no certificate" in reloader.poll().error
        assert answered(server, client(new, "c"))
        file.write_bytes(new.certificate)
        reloader.poll()
        assert answered(server, client(new, "c"))
        assert not answered(server, client(old, "c"))


def test_no_authority_at_all_is_refused(wording: Wording) -> None:
    """An empty file trusts nobody, which is an error to be told."""
    with pytest.raises(ServingError, match="no certificate") as caught:
        ServerTls(ask_clients=True).trust_clients(b"")
    wording(str(caught.value))
