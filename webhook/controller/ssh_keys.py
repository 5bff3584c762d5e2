"""Makes a pair of SSH keys, by which the replicas of one run reach each other."""

from __future__ import annotations

from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


class KeyPair(NamedTuple):
    """An ed25519 pair in OpenSSH's forms: PEM text, and a line of authorized_keys."""

    private: str
    public: str


def new_key_pair() -> KeyPair:
    """A pair that nobody has seen."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return KeyPair(pem.decode(), f"{public.decode()}\n")
