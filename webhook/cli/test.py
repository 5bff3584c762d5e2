"""`fairlead test`: run policy tests from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.exit_codes import DONE, FAILED
from webhook.cli.options import cluster_options, policies_option
from webhook.cli.output import output_option, print_json, print_result
from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.questions.where import Where


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from webhook.policy_tests import policy_test_model

        print_json(policy_test_model.schema())
        context.exit()


@click.command("test", cls=Command)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@policies_option(
    "Run the tests with these policies instead of those that they name: a folder, or a file "
    "(repeatable), or `cluster`.",
    "instead",
)
@click.option("--all-reached", is_flag=True, help="Fail if no test reaches some policy.")
@click.option("--passed", "with_passed", is_flag=True, help="List the tests that passed, too.")
@cluster_options
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
    instead: tuple[Where, ...],
    all_reached: bool,
    with_passed: bool,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Run policy tests: files named *.test.yaml, in a folder and the folders in it.

    A test has a pod and the expected result, fields, warnings or nodes. It fails if no policy
    matches, unless it expects that. It asks no cluster, but for `--policies cluster`.

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
      fairlead test policies/ --policies cluster    over those of the cluster
      fairlead test policies/ -o json | jq '.unreached'
      fairlead test --schema > policytest.json      for the editor

    \b
    Exit codes:
      0  every test passed
      1  a test failed, or a file cannot be read; with --all-reached, a policy was not reached
      2  wrong usage, no test file there, or the cluster did not answer
    """
    from webhook.questions.offline import policy_texts
    from webhook.questions.policy_test_report import document, lines, run

    report = run(path, policy_texts(instead, kubeconfig) if instead else None)
    if not report.files:
        raise click.UsageError(f"there is no *.test.yaml in {path}")
    print_result(
        output,
        json=lambda: document(report),
        text=lambda: lines(report, verbose=with_passed),
    )
    passed = report.passed and not (all_reached and report.unreached)
    context.exit(DONE if passed else FAILED)
