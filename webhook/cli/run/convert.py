"""`fairlead run convert`: convert a Polyaxonfile, or another engine's object, to a Run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.exit_codes import FAILED
from webhook.cli.output import output_option, print_notes, print_result
from webhook.cli.short_help import Command
from webhook.text.layout import finding_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.convert.polyaxon.complete import Converted
    from webhook.convert.polyaxon.convert import ConversionOptions

_FILES = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=False)


@click.command("convert", cls=Command)
@click.option(
    "-f",
    "--filename",
    "filenames",
    type=_FILES,
    multiple=True,
    required=True,
    metavar="FILE",
    help="A Polyaxonfile or an engine's object, or - for standard input. May be given more than "
    "once.",
)
@click.option(
    "--component",
    type=_FILES,
    metavar="FILE",
    help="The component of an operation that names it elsewhere (hubRef, pathRef, urlRef).",
)
@click.option("--name", default="", help="The Run's name.  [default: the file's own]")
@click.option(
    "--image", default="", help="The image of every main container, instead of the file's own."
)
@click.option(
    "-P",
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A param's value, as of polyaxon run -P. May be given more than once.",
)
@click.option("--strict", is_flag=True, help="Fail for warnings and notes, too.")
@output_option("How to print the Run.", ("yaml", "json"))
def command(
    filenames: tuple[Path, ...],
    component: Path | None,
    name: str,
    image: str,
    params: tuple[str, ...],
    strict: bool,
    output: str,
) -> None:
    """Print the Run that a Polyaxonfile or another engine's object describes, without a cluster.

    Engines' objects are TFJob, PyTorchJob, PaddleJob, XGBoostJob, JAXJob, MPIJob, MXJob, JobSet,
    DaskJob, SparkApplication, RayJob, Job, TrainJob with its runtime, and RayCluster with the Job
    of its driver. What a Run means otherwise than the object is a warning.

    Polyaxonfiles are those of the old schema (version 1: experiments, jobs, notebooks,
    tensorboards), components, and operations with their components. Fields without a
    counterpart are left out with a warning, which names the alternative. Errors and warnings go to
    stderr, with file, line, column and field.

    \b
    Examples:
      fairlead run convert -f polyaxonfile.yml > run.yaml
      fairlead run convert -f pytorchjob.yaml > run.yaml
      fairlead run convert -f polyaxonfile.yml --image registry/mnist:1 -P lr=0.01
      fairlead run convert -f operation.yaml --component component.yaml
      fairlead run convert -f polyaxonfile.yml | fairlead preview -o pods -f -

    \b
    Exit codes:
      0  the Run is printed
      1  errors (with --strict: or warnings, or notes), and nothing is printed, or a file cannot
         be read
      2  wrong usage
    """
    wanted = _conversion_options(name, image, params)
    result = _convert(filenames if component is None else (*filenames, component), wanted)
    for finding in result.findings:
        click.echo(finding_text(finding), err=True)
    document = result.document
    print_notes([result.note] if result.note else [])
    if document is None or (strict and (result.warnings or result.note)):
        sys.exit(FAILED)
    print_result(output, json=lambda: document, yaml=lambda: [document])


def _conversion_options(name: str, image: str, params: Sequence[str]) -> ConversionOptions:
    """Parse the params of the options. Raises UsageError for a param without a value."""
    from webhook.convert.polyaxon.convert import ConversionOptions

    given: dict[str, str] = {}
    for param in params:
        key, equals, value = param.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--param {param}: want NAME=VALUE")
        given[key.strip()] = value
    return ConversionOptions(name, image, given)


def _convert(paths: Sequence[Path], asked: ConversionOptions) -> Converted:
    """Return what becomes of the files. Raises UnreadableInput with all that cannot be read."""
    from webhook.convert.engines.convert import convert_object, is_engine_object
    from webhook.convert.polyaxon.convert import convert
    from webhook.questions.objects import STDIN, read_files

    # Polyaxon's names come from those of files: `-` gives none.
    files = {"-" if name == STDIN else name: text for name, text in read_files(paths).items()}
    if is_engine_object(files):
        if asked.image or asked.params:
            raise click.UsageError("--image and --param are for Polyaxonfiles; edit the object")
        return convert_object(files, asked.name)
    return convert(files, asked)
