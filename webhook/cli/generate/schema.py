"""`fairlead generate schema`: print the schema of documents, their reference, or CRDs."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import click

from webhook.cli.output import print_result
from webhook.cli.short_help import Command
from webhook.text.documents import as_one

# Read from files; no cluster defines it.
_TEAM: Final = "namespacedplacementpolicy"
_KINDS: Final = ("placementpolicy", "capacityclass", "placementexception", "runsource")
_ALL: Final = "all"
_RUN: Final = "run"
_PODS: Final = "pods"
_SCENARIO: Final = "scenario"
_CRD: Final = "crd"
# Of documents that are no policies, the module with their schema.
_MODULES: Final = {
    _RUN: "webhook.run.json_schema",
    _SCENARIO: "webhook.simulation.scenario",
    _PODS: "webhook.evaluation.result",
}


@click.command("schema", cls=Command)
@click.argument(
    "kind",
    metavar="[KIND]",
    type=click.Choice([*_KINDS, _TEAM, _ALL, _RUN, _SCENARIO, _PODS, _CRD], case_sensitive=False),
    default=_ALL,
    required=False,
)
@click.argument(
    "document_kind",
    metavar="[OF]",
    type=click.Choice([_RUN, *_KINDS], case_sensitive=False),
    required=False,
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "yaml", "markdown"]),
    help="json: for programs; markdown: a reference to read; yaml: for kubectl.  "
    "[default: json; yaml for crd]",
)
def command(kind: str, document_kind: str | None, output: str | None) -> None:
    """Print the JSON Schema of policy documents or Runs, or their CustomResourceDefinitions.

    With the schema, an editor with a YAML language server validates and completes a file while you
    write it: save the schema next to your policies, and name it in the first line of each file.

    \b
    KIND:
      all                 any policy document (the default)
      placementpolicy, capacityclass, placementexception, runsource, run, scenario,
      namespacedplacementpolicy
                          documents of this kind
      pods                what explain and preview -o patch print as JSON
      crd                 all CustomResourceDefinitions
      crd OF              the CustomResourceDefinition of one kind, such as `crd run`

    \b
    Examples:
      fairlead generate schema > fairlead.json
      # yaml-language-server: $schema=fairlead.json      (first line of a policy file)
      fairlead generate schema placementpolicy -o markdown        reference of every field
      fairlead generate schema run > run.json                     schema of Runs
      fairlead generate schema crd | kubectl apply -f -           install all definitions
      fairlead generate schema crd placementpolicy                one definition

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    if document_kind and kind != _CRD:
        cure = f"fairlead generate schema crd {document_kind}"
        raise click.UsageError(f"{document_kind} goes with crd only: {cure}")
    if kind == _CRD and output == "markdown":
        raise click.UsageError(
            "a definition has no reference of its own: `fairlead generate schema run -o markdown`, "
            "or another kind, explains every field"
        )

    def printed() -> list[dict[str, Any]]:
        return _definitions(document_kind) if kind == _CRD else [_schema(kind)]

    print_result(
        output or ("yaml" if kind == _CRD else "json"),
        json=lambda: as_one(printed()),
        yaml=printed,
        markdown=lambda: _reference(kind),
    )


# The models take as long to import as the rest of the command: not for --help.
def _definitions(name: str | None) -> list[dict[str, Any]]:
    from webhook.policy.crd.definitions import custom_resource_definitions
    from webhook.run.crd import custom_resource_definition

    policies = {
        kind.lower(): definition for kind, definition in custom_resource_definitions().items()
    }
    definitions = {_RUN: custom_resource_definition(), **policies}
    return [definitions[name]] if name else list(definitions.values())


def _schema(kind: str) -> dict[str, Any]:
    if kind in _MODULES:
        schema: dict[str, Any] = import_module(_MODULES[kind]).schema()
        return schema
    from webhook.policy import json_schema

    return json_schema.schema(kind)


def _reference(kind: str) -> str:
    from webhook.policy import json_schema
    from webhook.run import json_schema as of_runs

    if kind == _RUN:
        return of_runs.page()
    if kind in _MODULES:
        whole = _schema(kind)
        # Nobody writes the members of Pods.
        for schema in (whole, *whole["$defs"].values()) if kind == _PODS else ():
            del schema["required"]
        return json_schema.page_of(kind.capitalize(), whole)
    pages = json_schema.pages()
    wanted = pages if kind == json_schema.ALL else [f"{kind}.md"]
    return "\n".join(pages[page] for page in wanted)
