"""`fairlead run convert`: a Polyaxonfile as a Run."""

from __future__ import annotations

from pathlib import Path

import click

_FILES = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=False)


@click.command("convert")
@click.option(
    "-f",
    "--filename",
    "filenames",
    type=_FILES,
    multiple=True,
    required=True,
    metavar="FILE",
    help="A Polyaxonfile, or - for standard input. May be given more than once.",
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
@click.option("--strict", is_flag=True, help="Fail for warnings, too.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="How to print the Run.",
)
@click.pass_context
def command(
    context: click.Context,
    filenames: tuple[Path, ...],
    component: Path | None,
    name: str,
    image: str,
    params: tuple[str, ...],
    strict: bool,
    output: str,
) -> None:
    """Print the Run that a Polyaxonfile describes, without a cluster.

    Takes the old schema (version 1: experiments, jobs, notebooks, tensorboards), components, and
    operations with their components. What has no meaning here is left out with a warning, which
    says what to do instead. Errors and warnings go to stderr, with file, line, column and field.

    \b
    Examples:
      fairlead run convert -f polyaxonfile.yml > run.yaml
      fairlead run convert -f polyaxonfile.yml --image registry/mnist:1 -P lr=0.01
      fairlead run convert -f operation.yaml --component component.yaml
      fairlead run convert -f polyaxonfile.yml | fairlead run preview -f -

    \b
    Exit codes:
      0  the Run is printed
      1  errors (with --strict: or warnings), and nothing is printed, or a file cannot be read
      2  wrong usage
    """
    from webhook.cli.run import convert_run

    wanted = convert_run.wanted(name, image, params)
    paths = filenames if component is None else (*filenames, component)
    converted = convert_run.converted(paths, wanted)
    for line in convert_run.lines(converted):
        click.echo(line, err=True)
    if converted.document is None or (strict and converted.warnings):
        context.exit(1)
    click.echo(convert_run.text(converted.document, as_json=output == "json"), nl=False)
