"""Certificates of clients, for servers that ask for one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from certs.issue import Names, issue_client
from certs.pair import Pair


def client(authority: Pair, common_name: str, dns: Sequence[str] = ()) -> Pair:
    """A client's certificate by the authority, for an hour, with DNS names beside its own."""
    names = Names(dns=tuple(dns)) if dns else None
    now = datetime.now(UTC)
    return issue_client(authority, common_name, now, names=names, lifetime=timedelta(hours=1))
