"""`fairlead generate manifests`: print what an installation applies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.install_options import manifest_options
from webhook.cli.output import output_option, print_result
from webhook.cli.short_help import Command
from webhook.text.documents import as_list

if TYPE_CHECKING:
    from webhook.installation.choices import Choices


@click.command("manifests", cls=Command)
@manifest_options
@output_option("What to print.", ("yaml", "json"))
def command(choices: Choices, output: str) -> None:
    """Print the objects that `fairlead install` applies with these options.

    No cluster is asked: the options of an installation, what is left out on purpose there, and its
    own sources are not known. `fairlead install --dry-run` has these.

    \b
    Examples:
      fairlead generate manifests --image registry.example.com/fairlead:0.1.0 > fairlead.yaml
      fairlead generate manifests --overlay default --overlay monitoring | kubectl diff -f -

    \b
    Exit codes:
      0  printed
      1  a file cannot be read or has errors
      2  wrong usage
    """
    from webhook.installation.choices import adapted
    from webhook.installation.stored_options import LastTime, as_last_time

    try:
        objects = [*adapted(as_last_time(choices, LastTime().options)).values()]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--source") from None
    print_result(output, json=lambda: as_list(objects), yaml=lambda: objects)
