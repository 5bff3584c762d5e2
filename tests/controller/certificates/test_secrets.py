"""Secrets from and to what certs keeps."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from webhook import names
from webhook.controller.certificates import secrets

OLD = b64encode(b"old").decode()
NEW = b64encode(b"new").decode()


def secret(**more: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "s",
            "resourceVersion": "7",
            "annotations": {names.ROTATE: "now", "note": "stays"},
        },
        "type": "Opaque",
        "data": {"tls.crt": OLD, "staged.key": OLD, "other": OLD},
        **more,
    }


def test_data_is_decoded_and_absence_is_nothing() -> None:
    """A Secret without data has a null there."""
    assert secrets.data_of(secret()) == {"tls.crt": b"old", "staged.key": b"old", "other": b"old"}
    assert secrets.data_of({"data": None}) == secrets.data_of(None) == {}


def test_a_request_is_an_annotation() -> None:
    """Whatever its value."""
    assert secrets.asks(secret())
    assert not secrets.asks(secret(metadata={"annotations": None}))
    assert not secrets.asks(None)


def test_what_is_kept_replaces_all_of_ours_and_nothing_else() -> None:
    """At the version that was read; a key that is kept no more goes."""
    before = secret()
    body = secrets.replaced(before, {"tls.crt": b"new"}, answered=True)
    assert body["data"] == {"tls.crt": NEW, "other": OLD}
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["metadata"]["annotations"] == {"note": "stays"}
    assert before == secret()


def test_a_request_that_is_not_answered_stays() -> None:
    """For the next write."""
    body = secrets.replaced(secret(), {}, answered=False)
    assert body["metadata"]["annotations"] == {names.ROTATE: "now", "note": "stays"}


def test_a_type_that_demands_its_keys_has_them() -> None:
    """Empty, where an authority does not sign yet."""
    body = secrets.replaced(secret(type=secrets.TLS), {"staged.crt": b"new"}, answered=False)
    assert body["data"] == {"tls.crt": "", "tls.key": "", "staged.crt": NEW, "other": OLD}
    assert secrets.new("s", secrets.TLS, {"tls.crt": b"new"})["data"] == {
        "tls.crt": NEW,
        "tls.key": "",
    }


def test_a_new_secret_has_its_type() -> None:
    """And a label that says whose it is."""
    body = secrets.new("s", secrets.OPAQUE, {"tls.crt": b"new"})
    assert body["type"] == "Opaque"
    assert body["data"] == {"tls.crt": NEW}
    assert body["metadata"] == {"name": "s", "labels": {"app.kubernetes.io/name": "fairlead"}}
