"""`fairlead test`: run policy tests from files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from webhook.cli.output_option import output_option


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from webhook.policy_tests import json_schema

        click.echo(json.dumps(json_schema.schema(), indent=2, ensure_ascii=False))
        context.exit()


@click.command("test")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--policies",
    "instead",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Run the tests over these policies, and not over those that they name. May be repeated.",
)
@click.option("--all-reached", is_flag=True, help="Fail if some policy was reached by no test.")
@click.option("-v", "--verbose", is_flag=True, help="List the tests that passed, too.")
@output_option()
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of test files, for editors, and exit.",
)
@click.pass_context
def command(
    context: click.Context,
    path: Path,
    instead: tuple[Path, ...],
    all_reached: bool,
    verbose: bool,
    output: str,
) -> None:
    """Run policy tests: files named *.test.yaml, in a folder and the folders in it.

    A test gives a pod and says what must come out: the result, fields, warnings, or on which
    nodes the pod may then run. It fails if no policy takes part, unless it expects that. Without
    a cluster, and without the network.

    \b
    A test file:
      apiVersion: fairlead.dev/v1alpha1
      kind: PolicyTest
      policies: [spot.yaml]                  beside this file; left out, its whole folder
      nodes:
      - {name: spot-1, labels: {pool: spot}}
      - {name: other-1}
      tests:
      - name: a worker runs on spot
        pod: {labels: {fairlead.dev/run: mnist, fairlead.dev/role: worker}}
        expect: {runsOn: [spot-1]}

    \b
    Examples:
      fairlead test policies/                       every test in there
      fairlead test policies/ --policies new/       the same tests over other policies
      fairlead test policies/ -o json | jq '.unreached'
      fairlead test --schema > policytest.json      for the editor

    \b
    Exit codes:
      0  every test passed
      1  a test failed, or a file cannot be read; with --all-reached, a policy was not reached
      2  wrong usage, or no test file there
    """
    from webhook.cli import policy_test_run, policy_test_text

    report = policy_test_run.run(path, instead)
    if not report.files:
        raise click.UsageError(f"there is no *.test.yaml in {path}")
    if output == "json":
        click.echo(json.dumps(policy_test_text.document(report), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(policy_test_text.lines(report, verbose=verbose)))
    context.exit(0 if report.passed and not (all_reached and report.unreached) else 1)
