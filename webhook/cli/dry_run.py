"""--dry-run=server: the API server that a command asks until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.exit_codes import UNKNOWN, errors_exit

if TYPE_CHECKING:
    from webhook.evaluation.dry_run import Server
    from webhook.kube.kubeconfig import Kubeconfig


def server_of(kubeconfig: Kubeconfig) -> Server:
    """Return how to ask that API server, until the command ends.

    If it does not answer at all, the command exits with UNKNOWN.
    """
    from webhook.questions.dry_run import api_server

    with errors_exit(UNKNOWN):
        return click.get_current_context().with_resource(api_server(kubeconfig))
