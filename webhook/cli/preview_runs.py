"""`fairlead preview -o pods` and `-o objects`: what a Run of a file would become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cli.exit_codes import DONE
from webhook.cli.output import print_notes, print_text, print_yaml, say
from webhook.cli.selection import code_of_pods, read_files
from webhook.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.questions.selection import Selection
    from webhook.run_client.preview_report import Group
    from webhook.run_client.run_files import Planned

# Of --output: the pods in words, and every object.
FORMS: Final = ("pods", "objects")


def show_runs(selection: Selection, cluster_domain: str, output: str) -> int:
    """Print the pods of the Runs in files, or their objects as YAML.

    Return the exit code: whether every pod would be admitted, as far as that was asked. Raises
    WrongUsage for objects of a cluster, UnreadableInput without a Run, and InvalidDocuments.
    """
    from webhook.questions.decisions import remarks, unknown_facts
    from webhook.run_client.preview_report import groups, lines, manifests
    from webhook.run_client.run_files import read_plans

    if selection.live:
        raise WrongUsage(f"-o {output} is about Runs in files: give them with -f")
    namespace = selection.namespace or "default"
    plans = read_plans(selection.filenames, namespace, cluster_domain)
    print_notes(str(warning) for planned in plans for warning in planned.warnings)
    offline = read_files(
        selection,
        lambda sources: [template for planned in plans for template in planned.templates(sources)],
    )
    judged = bool(selection.policies or selection.dry_run)
    shown = [(planned, groups(planned, offline.world, judged=judged)) for planned in plans]
    replicas = [group.replicas for _, run_groups in shown for group in run_groups]
    unknown: list[str] = []
    if selection.policies:
        unknown = [*offline.describe_unknown("--namespaces")]
    else:
        print_notes(["without --policies, placement is what the Run itself requests"])
    if judged:
        unknown += unknown_facts(replicas)
    print_notes([*unknown, *remarks(replicas)])
    if output == "objects":
        print_yaml(manifest for preview in shown for manifest in manifests(*preview))
        _say_rejections(shown)
    else:
        print_text(output, ["\n\n".join("\n".join(lines(*preview)) for preview in shown)])
    return code_of_pods(selection.fail_on, replicas, unknown) if judged else DONE


def _say_rejections(shown: Sequence[tuple[Planned, Sequence[Group]]]) -> None:
    """Print which pods would be rejected, with the reasons, on stderr."""
    from webhook.run_client.preview_report import subject

    for planned, groups in shown:
        run = planned.run
        for group in groups:
            who = f"Run/{run.name} in {run.namespace}, {subject(group)}"
            for reason in group.reasons:
                say("rejected", f"{who}: {reason}")
