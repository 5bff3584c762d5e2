"""What `fairlead preview` prints can be applied: the webhook would change nothing in it.

What else it prints is in golden/sessions/mutate.yaml.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.files import POD, REJECTED, TF_JOB, Files
from tests.fast_yaml import load_yaml
from tests.wording import line_with
from webhook.cli.preview import command
from webhook.cli.preview_text import show
from webhook.questions.decisions import decisions
from webhook.questions.offline import read_offline, read_policies

STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: research}
spec:
  selector: {matchLabels: {app: db}}
  serviceName: db
  template:
    metadata: {labels: {app: db, fairlead.dev/run: db}}
    spec: {containers: [{name: main, image: i, volumeMounts: [{name: data, mountPath: /d}]}]}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]
"""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A folder with policies and nodes."""
    return Files(tmp_path, command)


def test_what_is_printed_is_decided_on_once_more(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever was decided before: what the webhook would refuse or change is not printed."""
    arm = POD.replace("spec:\n", "spec:\n  nodeSelector: {arch: arm64}\n")
    source, path = files.write("pod.yaml", arm), files.write("rejects.yaml", REJECTED)
    offline = read_offline([source], [files.folder / "policies.yaml"], "default", None)
    decided = decisions(offline)
    now = replace(offline, world=replace(offline.world, policies=read_policies([path])))
    assert not show(now, decided, "yaml")
    told = capsys.readouterr()
    assert told.out == ""
    line_with(told.err, "error: ", "not printed", "Pod/mnist", "policy amd64-only")


def test_what_is_printed_gives_no_second_change(files: Files) -> None:
    """What was mutated once is unchanged when it comes again."""
    first = files.on(f"{TF_JOB}---\n{POD}", "-o", "yaml")
    second = files.on(first.stdout, "-o", "yaml")
    assert second.stdout == first.stdout
    names = files.on(first.stdout, "-o", "text").stdout
    assert "placed" not in names
    assert names.count("unchanged") == 2


def test_the_claims_of_a_stateful_set_are_matched_and_not_printed(files: Files) -> None:
    """The shipped policy keeps its pods on demand; the volumes are not the template's."""
    spot, stateful = (
        Path("policies", each).read_text()
        for each in ("capacity/gke-spot.yaml", "stateful-on-demand/stateful-on-demand.yaml")
    )
    result = files.on(STATEFUL_SET, "-o", "yaml", policies=[spot, "---\n", stateful])
    assert result.exit_code == 0
    spec = load_yaml(result.stdout)["spec"]["template"]["spec"]
    assert "requiredDuringScheduling" in str(spec["affinity"]["nodeAffinity"])
    assert "volumes" not in spec
