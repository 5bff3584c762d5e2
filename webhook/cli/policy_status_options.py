"""The options of `fairlead controller` that concern the status of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.number import Number

if TYPE_CHECKING:
    from collections.abc import Callable


def policy_status_options(function: Callable[..., None]) -> Callable[..., None]:
    """--policy-status, --policy-status-interval and --webhook-replica."""
    status = click.option(
        "--policy-status/--no-policy-status",
        default=None,
        help="Write the status of the cluster's policies, capacity classes and exceptions. "
        "Default: yes, unless --namespace is given, for only one controller may.",
    )
    interval = click.option(
        "--policy-status-interval",
        type=Number(0.2, 3600),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="The pods that one policy has matched are written no oftener. What is new of the "
        "policy itself is written at once.",
    )
    replica = click.option(
        "--webhook-replica",
        "webhook_replicas",
        multiple=True,
        metavar="HOST:PORT",
        callback=_addresses,
        help="Where a replica of the webhook has its /metrics, if it runs in no pod. Repeatable. "
        "Default: the webhook's pods in the Lease's namespace.",
    )
    return status(interval(replica(function)))


def _addresses(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[tuple[str, int], ...]:
    return tuple(map(_address, given))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise click.BadParameter(
            f"{text!r} is no address: give a host and a port, such as 127.0.0.1:8081"
        )
    return host.strip("[]"), int(port)
