"""SSH keys of one run."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from webhook.controller.action_executor import new_key_pair


def test_a_pair_belongs_together_and_is_in_openssh_s_forms() -> None:
    """The private one as ssh reads it, the public one as a line of authorized_keys."""
    pair = new_key_pair()
    assert pair.private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    private = serialization.load_ssh_private_key(pair.private.encode(), password=None)
    public = serialization.load_ssh_public_key(pair.public.encode())
    assert isinstance(private, Ed25519PrivateKey)
    assert private.public_key() == public
    assert pair.public.startswith("ssh-ed25519 ")
    assert pair.public.endswith("\n")


def test_no_two_runs_share_a_key() -> None:
    """Each is made again."""
    assert new_key_pair() != new_key_pair()
