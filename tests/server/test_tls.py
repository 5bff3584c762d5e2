"""Certificates are swapped between two handshakes, or refused and the old one serves on."""

from __future__ import annotations

import http.client
import socket
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from certs.pair import Pair
from tests.server.clients import client
from tests.server.config_map import mount
from tests.server.serving import HOST, Running, authority, leaf, post, running, serial_number
from tests.wording import Wording, mentions
from webhook.errors import ServingError
from webhook.server.certificate_sources import authorities_of_file, certificate_of_files
from webhook.server.tls import ServerTls, load_pair, refuse_caller

CLIENTS = authority()
NAMED = frozenset({"api-server", "other.example"})


def _handshake(server: Running, version: ssl.TLSVersion, name: str | None) -> tuple[str, int]:
    """Return the TLS version and the serial number that a client sees; no name sends no SNI."""
    context = ssl.create_default_context(cadata=server.trust.certificate.decode())
    context.minimum_version = context.maximum_version = version
    context.check_hostname = name is not None
    with (
        socket.create_connection((HOST, server.https_port)) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        der = connection.getpeercert(binary_form=True)
        assert der
        return str(connection.version()), x509.load_der_x509_certificate(der).serial_number


def test_the_next_handshake_uses_a_swapped_certificate() -> None:
    """New connections get the new certificate, and the one that stands goes on answering."""
    with running() as server:
        standing = server.connect()
        assert post(standing, b"one").read() == b"one"
        before = serial_number(standing)
        pair = leaf(server.trust)
        served = server.tls.swap(pair.certificate, pair.private_key)
        assert server.serial_number() == served.serial_number != before
        assert post(standing, b"two").read() == b"two"
        assert serial_number(standing) == before
        standing.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", ["localhost", HOST, None])
def test_every_client_gets_the_current_certificate(
    version: ssl.TLSVersion, name: str | None
) -> None:
    """With TLS 1.3, and 1.2 where it is allowed; by name, by address, without any name sent."""
    with running(minimum=ssl.TLSVersion.TLSv1_2) as server:
        for _ in range(2):
            pair = leaf(server.trust)
            served = server.tls.swap(pair.certificate, pair.private_key)
            seen = _handshake(server, version, name)
            assert seen == (version.name.replace("_", "."), served.serial_number)


def test_tls_1_2_is_refused_unless_it_is_asked_for() -> None:
    """The API server speaks 1.3."""
    with running() as server:
        with pytest.raises(ssl.SSLError):
            _handshake(server, ssl.TLSVersion.TLSv1_2, "localhost")
        assert _handshake(server, ssl.TLSVersion.TLSv1_3, "localhost")[0] == "TLSv1.3"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_before_1_2_is_refused() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with (
        running(minimum=ssl.TLSVersion.TLSv1_2) as server,
        socket.create_connection((HOST, server.https_port)) as plain,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(plain, server_hostname=HOST)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_no_ticket_lets_a_session_go_on(version: ssl.TLSVersion) -> None:
    """A resumed session would never see the new certificate, so no client is given a ticket."""
    with running(minimum=ssl.TLSVersion.TLSv1_2) as server:
        context = ssl.create_default_context(cadata=server.trust.certificate.decode())
        context.minimum_version = context.maximum_version = version
        with (
            socket.create_connection((HOST, server.https_port)) as plain,
            context.wrap_socket(plain, server_hostname=HOST) as connection,
        ):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            # A ticket comes with or before the first answer.
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            assert connection.session is not None
            assert not connection.session.has_ticket


def test_a_mismatched_pair_is_refused_and_the_old_one_serves_on() -> None:
    """Certificate and key of different pairs raise, and handshakes succeed as before."""
    with running() as server:
        before = server.serial_number()
        one, other = leaf(server.trust), leaf(server.trust)
        with pytest.raises(ServingError, match="does not belong"):
            server.tls.swap(one.certificate, other.private_key)
        assert server.serial_number() == before
        assert server.tls.served is not None
        assert server.tls.served.serial_number == before


@pytest.mark.parametrize("garbled", ["certificate", "private_key"])
def test_garbled_pem_is_refused_without_showing_it(garbled: str) -> None:
    """Half a file, as a writer may leave it, raises an error that quotes nothing of it."""
    pair = leaf(authority())
    cut = {
        "certificate": pair.certificate,
        "private_key": pair.private_key,
        garbled: getattr(pair, garbled)[:100],
    }
    with pytest.raises(ServingError, match="can be read") as caught:
        ServerTls().swap(cut["certificate"], cut["private_key"])
    assert cut[garbled].splitlines()[1].decode() not in str(caught.value)


def test_a_pair_that_openssl_does_not_serve_with_is_refused() -> None:
    """A key that is read and matches may still be too weak for OpenSSL."""
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505  too weak is what it is for
    name = x509.Name([])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with pytest.raises(ServingError, match=r"OpenSSL refuses .*P-256"):
        ServerTls().swap(certificate, private)


def test_without_a_certificate_handshakes_fail_until_one_comes() -> None:
    """The port is open and not ready; the first swap is all it takes."""
    with running(certificate=False) as server:
        with pytest.raises(ssl.SSLError):
            server.serial_number()
        assert not server.tls.condition().ready
        pair = leaf(server.trust)
        served = server.tls.swap(pair.certificate, pair.private_key)
        assert server.serial_number() == served.serial_number
        assert server.tls.condition().ready


def test_a_certificate_that_expires_while_it_serves_is_not_ready() -> None:
    """Clients refuse it from then on, and the reason says since when."""
    now = datetime.now(UTC)
    tls = ServerTls(clock=lambda: now)
    pair = leaf(authority())
    tls.swap(pair.certificate, pair.private_key)
    assert tls.condition().ready
    now += timedelta(days=31)
    assert not tls.condition().ready
    assert "expired at" in tls.condition().reason


def test_a_swapped_secret_is_noticed_and_served(tmp_path: Path) -> None:
    """A Secret's volume swaps both files at once, and the next poll takes them, each time."""
    with running() as server:
        reloader = certificate_of_files(tmp_path / "tls.crt", tmp_path / "tls.key", server.tls)
        seen: list[int] = []
        wanted: list[int] = []
        for version in ("v1", "v2", "v3"):
            pair = leaf(server.trust)
            mount(tmp_path, version, {"tls.crt": pair.certificate, "tls.key": pair.private_key})
            reloader.poll()
            wanted.append(pair.check().serial_number)
            seen.append(server.serial_number())
        assert seen == wanted


def test_files_written_one_after_the_other_are_taken_when_they_match(tmp_path: Path) -> None:
    """Between the two writes the pair does not match: it is refused, and then taken."""
    with running() as server:
        certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
        old, new = leaf(server.trust), leaf(server.trust)
        certificate.write_bytes(old.certificate)
        key.write_bytes(old.private_key)
        reloader = certificate_of_files(certificate, key, server.tls)
        reloader.poll()
        certificate.write_bytes(new.certificate)
        assert "does not belong" in reloader.poll().error
        assert server.serial_number() == old.check().serial_number
        key.write_bytes(new.private_key)
        assert reloader.poll().error == ""
        assert server.serial_number() == new.check().serial_number


def test_missing_certificate_files_are_reported_by_path(tmp_path: Path) -> None:
    reloader = certificate_of_files(tmp_path / "tls.crt", tmp_path / "tls.key", ServerTls())
    error = reloader.poll().error
    assert f"{tmp_path}/tls.crt: No such file" in error
    assert f"{tmp_path}/tls.key: No such file" in error


def test_a_key_needs_no_writable_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a read-only root file system there is no folder for temporary files; none is left."""
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), leaf(authority()))


def certificate(common_name: str = "", dns: Sequence[str] = ()) -> dict[str, object]:
    """A certificate as getpeercert() tells of it."""
    subject = ((("organizationName", "o"),), (("commonName", common_name),))
    return {"subject": subject, "subjectAltName": tuple(("DNS", name) for name in dns)}


@pytest.mark.parametrize(
    "seen", [certificate("api-server"), certificate("x", ["a", "other.example"])]
)
def test_a_client_may_call_by_its_common_name_or_a_dns_name(seen: dict[str, object]) -> None:
    assert refuse_caller(NAMED, seen) == ""


def test_a_client_with_another_name_gets_the_accepted_names(wording: Wording) -> None:
    """And its own; without any name asked for, whoever TLS let in may call."""
    refusal = refuse_caller(NAMED, certificate("x", ["a.example"]))
    client, allowed = refusal.split("; ")
    mentions(client, "certificate", "x, a.example")
    mentions(allowed, "may call: api-server,")
    wording(refusal)
    assert "no name" in refuse_caller(NAMED, {})
    assert refuse_caller(frozenset(), {}) == ""


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    """One that lets in clients by CLIENTS, and answers those of two names."""
    with running(clients=CLIENTS, callers=NAMED) as started:
        yield started


def connection(server: Running, pair: Pair | None) -> http.client.HTTPSConnection:
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


def test_before_any_authority_is_known_no_client_connects() -> None:
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
        reloader = authorities_of_file(file, server.tls)
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
