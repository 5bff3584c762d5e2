"""`fairlead schema`: print the schema of documents, their reference, or the CRD of Runs."""

from __future__ import annotations

import json
from typing import Any, Final

import click

_POLICIES: Final = ("placementpolicy", "capacityclass", "all")
_RUN: Final = "run"
_CRD: Final = "crd"


@click.command("schema")
@click.argument("kind", type=click.Choice([*_POLICIES, _RUN, _CRD]), default="all", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "yaml", "markdown"]),
    help="json for programs, markdown for people, yaml for kubectl.  [default: json; of crd yaml]",
)
def command(kind: str, output: str | None) -> None:
    """Print the JSON Schema of policy documents or Runs, or the CRD of Runs.

    An editor with a YAML language server checks a file, and completes it, while you write: put the
    schema beside your policies and name it in the file's first line. `all` is for the documents
    of policies, of whichever kind.

    \b
    Examples:
      fairlead schema > fairlead.json
      # yaml-language-server: $schema=fairlead.json      (first line of a policy file)
      fairlead schema placementpolicy -o markdown        every field, explained
      fairlead schema run > run.json                     the same for Runs
      fairlead schema crd | kubectl apply -f -           the cluster takes Runs
    """
    # The models take as long to import as the rest of the command: not for --help.
    from webhook.cli.yaml_out import yaml_text

    if kind == _CRD and output == "markdown":
        raise click.UsageError("the reference of Runs is that of `fairlead schema run`")
    if output == "markdown":
        click.echo(_reference(kind), nl=False)
    elif output == "yaml" or (kind == _CRD and output is None):
        click.echo(yaml_text(_schema(kind)), nl=False)
    else:
        click.echo(json.dumps(_schema(kind), indent=2, ensure_ascii=False))


def _schema(kind: str) -> dict[str, Any]:
    if kind == _CRD:
        from webhook.run.crd import custom_resource_definition

        return custom_resource_definition()
    if kind == _RUN:
        from webhook.run import json_schema as of_runs

        return of_runs.schema()
    from webhook.policy import json_schema as of_policies

    return of_policies.schema(kind)


def _reference(kind: str) -> str:
    if kind == _RUN:
        from webhook.run import json_schema as of_runs

        return of_runs.page()
    from webhook.policy import json_schema, reference

    pages = reference.pages()
    wanted = pages if kind == json_schema.ALL else [f"{kind}.md"]
    return "\n".join(pages[page] for page in wanted)
