"""`fairlead schema`: print the JSON Schema of policy documents, or their reference."""

from __future__ import annotations

import json

import click


@click.command("schema")
@click.argument(
    "kind",
    type=click.Choice(["placementpolicy", "capacityclass", "all"]),
    default="all",
    required=False,
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="A schema for programs, or the reference for people.",
)
def command(kind: str, output: str) -> None:
    """Print the JSON Schema of policy documents.

    An editor with a YAML language server checks a policy file, and completes it, while you write:
    put the schema beside your policies and name it in the file's first line.

    \b
    Examples:
      fairlead schema > fairlead.json
      # yaml-language-server: $schema=fairlead.json      (first line of a policy file)
      fairlead schema placementpolicy -o markdown        every field, explained
    """
    # The model takes as long to import as the rest of the command: not for --help.
    from webhook.policy import json_schema, reference

    if output == "json":
        click.echo(json.dumps(json_schema.schema(kind), indent=2, ensure_ascii=False))
    else:
        pages = reference.pages()
        wanted = pages if kind == json_schema.ALL else [f"{kind}.md"]
        click.echo("\n".join(pages[page] for page in wanted), nl=False)
