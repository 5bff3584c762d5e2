"""`fairlead controller`: run the controller of Runs."""

from __future__ import annotations

import sys

import click

from webhook.cli.exit_codes import FAILED
from webhook.cli.short_help import Command
from webhook.controller.settings import ControllerSettings
from webhook.settings import settings_options


@click.command("controller", cls=Command)
@settings_options(ControllerSettings)
def command(settings: ControllerSettings) -> None:
    """Run the controller, which creates and reconciles the replica pods of Runs.

    Several controllers may run: one leads, the others watch and take over if it stops. After
    SIGTERM or SIGINT the controller releases the Lease and exits with code 0; the next leader
    continues its work. The admission webhook (`fairlead serve`) places the pods. The leader also
    writes the status of policies, capacity classes, exceptions and sources in the cluster, and with
    --certificates it manages the webhook's certificates.

    \b
    Examples:
      # In a cluster:
      fairlead controller --certificates --webhook-configuration fairlead
      # On this machine, for a sandbox (`fairlead sandbox up` does all of this):
      fairlead controller --no-leader-election
    """
    if not settings.retry_period < settings.renew_deadline < settings.lease_duration:
        raise click.UsageError(
            "want --retry-period < --renew-deadline < --lease-duration: the holder has to stop "
            "writing before another may begin"
        )
    if settings.restart_backoff_first > settings.restart_backoff_longest:
        raise click.UsageError(
            f"{_option_text('restart_backoff_first')} is more than "
            f"{_option_text('restart_backoff_longest')}: want first <= longest"
        )
    if settings.policy_reports and not settings.writes_policy_status:
        raise click.UsageError(
            "--policy-reports requires --policy-status: reports are about the policies in the "
            "cluster, and pods of all namespaces"
        )
    from webhook.controller import controller_process
    from webhook.server.logs import configure

    configure(settings.log_level)
    if not controller_process.run(settings):
        sys.exit(FAILED)


def _option_text(parameter: str) -> str:
    context = click.get_current_context()
    text = f"--{parameter.replace('_', '-')} {context.params[parameter]:g}"
    is_default = context.get_parameter_source(parameter) is click.core.ParameterSource.DEFAULT
    return f"{text} (the default)" if is_default else text
