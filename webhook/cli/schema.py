"""`fairlead schema`: print the schema of documents, their reference, or the cluster's CRDs."""

from __future__ import annotations

import json
from typing import Any, Final

import click

_KINDS: Final = ("placementpolicy", "capacityclass", "placementexception")
_ALL: Final = "all"
_RUN: Final = "run"
_CRD: Final = "crd"


@click.command("schema")
@click.argument(
    "kind",
    metavar="[KIND]",
    type=click.Choice([*_KINDS, _ALL, _RUN, _CRD]),
    default=_ALL,
    required=False,
)
@click.argument("of", metavar="[OF]", type=click.Choice([_RUN, *_KINDS]), required=False)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "yaml", "markdown"]),
    help="json for programs, markdown for people, yaml for kubectl.  [default: json; of crd yaml]",
)
def command(kind: str, of: str | None, output: str | None) -> None:
    """Print the JSON Schema of policy documents or Runs, or the definitions for a cluster (CRDs).

    An editor with a YAML language server checks a file, and completes it, while you write: put the
    schema beside your policies and name it in the file's first line. KIND is placementpolicy,
    capacityclass, placementexception, run, or `all` (the default), which is for the documents of
    policies, of whichever kind. `crd` prints the definitions of Runs, policies, capacity classes
    and exceptions; `crd OF` that of one kind: run, placementpolicy, capacityclass or
    placementexception.

    \b
    Examples:
      fairlead schema > fairlead.json
      # yaml-language-server: $schema=fairlead.json      (first line of a policy file)
      fairlead schema placementpolicy -o markdown        every field, explained
      fairlead schema run > run.json                     the same for Runs
      fairlead schema crd | kubectl apply -f -           the cluster takes Runs and policies
      fairlead schema crd placementpolicy                one definition alone
    """
    # The models take as long to import as the rest of the command: not for --help.
    from webhook.cli.yaml_out import yaml_documents

    if of and kind != _CRD:
        raise click.UsageError(f"{of} goes with crd only: fairlead schema crd {of}")
    if kind == _CRD and output == "markdown":
        raise click.UsageError(
            "a definition has no reference of its own: `fairlead schema run -o markdown`, or "
            "another kind, explains every field"
        )
    if output == "markdown":
        click.echo(_reference(kind), nl=False)
        return
    printed = _definitions(of) if kind == _CRD else [_schema(kind)]
    if output == "yaml" or (kind == _CRD and output is None):
        click.echo(yaml_documents(printed), nl=False)
    else:
        whole = printed[0] if len(printed) == 1 else _list(printed)
        click.echo(json.dumps(whole, indent=2, ensure_ascii=False))


def _definitions(of: str | None) -> list[dict[str, Any]]:
    """The definition of one kind, or of all of them."""
    from webhook.policy.crd import custom_resource_definitions
    from webhook.run.crd import custom_resource_definition

    policies = {
        kind.lower(): definition for kind, definition in custom_resource_definitions().items()
    }
    found = {_RUN: custom_resource_definition(), **policies}
    return [found[of]] if of else list(found.values())


def _list(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Several objects as one, as kubectl takes and prints them in JSON."""
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def _schema(kind: str) -> dict[str, Any]:
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
