"""Which options of `fairlead serve` go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

# What is watched in a cluster, by parameter: there is none with --namespaces.
_WATCHED: Final = {
    "policies_from_cluster": "--policies-from-cluster",
    "tls_secret": "--tls-secret",
    "webhook_configuration": "--webhook-configuration",
    "nodes": "--nodes",
}


def check_usage(given: Mapping[str, Any]) -> None:
    """Raise a UsageError if parameters, by name, exclude each other, or one is missing."""
    if bool(given["policies"]) == given["policies_from_cluster"]:
        raise click.UsageError(
            "want policies: --policies DIR, or --policies-from-cluster, and not both"
        )
    if given["kubeconfig"] and given["cluster_file"]:
        raise click.UsageError("--kubeconfig or --namespaces: a cluster or a file, not both")
    _check_certificate(given)
    for parameter, option in _WATCHED.items():
        if given[parameter] and given["cluster_file"]:
            raise click.UsageError(f"{option} is watched in a cluster: not with --namespaces")
    if given["events"] and given["cluster_file"]:
        raise click.UsageError("--events are written to a cluster: not with --namespaces")
    most, in_flight = given["max_connections"], given["max_in_flight"]
    if most <= in_flight:
        raise click.UsageError(
            f"--max-connections {most}: want more than --max-in-flight {in_flight}"
        )
    if given["client_names"] and not given["client_ca"]:
        raise click.UsageError("--client-name goes with --client-ca")


def _check_certificate(given: Mapping[str, Any]) -> None:
    cert, key = bool(given["cert"]), bool(given["key"])
    sources = (cert or key, given["tls_secret"] is not None, given["self_signed"])
    if sum(sources) != 1 or cert != key:
        raise click.UsageError(
            "want a certificate: --cert and --key, or --tls-secret, or --self-signed"
        )
    if (given["extra_names"] or given["ca_out"]) and not given["self_signed"]:
        raise click.UsageError("--name and --ca-out go with --self-signed")
