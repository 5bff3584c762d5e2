"""`fairlead test`: run policy tests from files."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli.exit_codes import DONE, FAILED
from webhook.cli.output import output_option, print_json, print_result


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from webhook.policy_tests import policy_test_model

        print_json(policy_test_model.schema())
        context.exit()


@click.command("test")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--policies",
    "instead",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Run the tests with these policies instead of those that they name. May be repeated.",
)
@click.option("--all-reached", is_flag=True, help="Fail if no test reaches some policy.")
@click.option("-v", "--verbose", is_flag=True, help="List the tests that passed, too.")
@output_option(report="PolicyTestReport")
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

    A test has a pod and the expected result, fields, warnings or nodes. It fails if no policy
    matches, unless it expects that. It needs no cluster and no network.

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
      fairlead test policies/                       every test in the folder
      fairlead test policies/ --policies new/       the same tests over other policies
      fairlead test policies/ -o json | jq '.unreached'
      fairlead test --schema > policytest.json      for the editor

    \b
    Exit codes:
      0  every test passed
      1  a test failed, or a file cannot be read; with --all-reached, a policy was not reached
      2  wrong usage, or no test file there
    """
    from webhook.questions.policy_test_report import document, lines, run

    report = run(path, instead)
    if not report.files:
        raise click.UsageError(f"there is no *.test.yaml in {path}")
    print_result(
        output,
        json=lambda: document(report),
        text=lambda: lines(report, verbose=verbose),
    )
    passed = report.passed and not (all_reached and report.unreached)
    context.exit(DONE if passed else FAILED)
