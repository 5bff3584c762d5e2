"""`fairlead exceptions` of files, and what explain and mutate say of exceptions."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.cli.files import POD, Files
from tests.kube.fake_api import Answer, Request, answer_of, client_of, fake_api
from tests.policy_tests.writing import policy
from tests.wording import Wording, line_with, mentions
from webhook import names
from webhook.cli import check, explain, mutate
from webhook.cli.exceptions import command
from webhook.cli.exceptions_report import describe_match, of_cluster
from webhook.errors import ClusterError
from webhook.policy.match_model import Match
from webhook.times import to_second

NOW = datetime.now(UTC)
LATER, LATEST = NOW + timedelta(hours=5), NOW + timedelta(days=50)
EARLIER = NOW - timedelta(days=2, hours=1)
STRICT = policy("strict", "requirements: {nodeSelector: {pool: a}}, description: All need a.")


def exception(name: str, until: datetime, policies: str = "[strict]") -> str:
    """An exception for workers, as a document of a file."""
    return (
        "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementException\n"
        f"metadata: {{name: {name}}}\n"
        f"spec:\n  policies: {policies}\n  match: {{namespaces: [research], roles: [worker]}}\n"
        f"  until: {to_second(until)}\n  reason: |\n    Anna looks\n    for a leak.\n---\n"
    )


def timeless(text: str) -> str:
    """The text, with words in the place of times that are of this moment."""
    for moment, word in ((LATER, "LATER"), (LATEST, "LATEST"), (EARLIER, "EARLIER")):
        text = text.replace(to_second(moment), word)
    return re.sub(r"\(in [\ddhm]+\)", "(in SOME TIME)", text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three exceptions, one of which has ended."""
    texts = [exception("b", LATEST), exception("a", LATER, '["*"]'), exception("c", EARLIER)]
    (tmp_path / "p.yaml").write_text("".join([STRICT, *texts]))
    return tmp_path


def test_the_soonest_to_end_comes_first_and_what_has_ended_last(
    folder: Path, wording: Wording
) -> None:
    """Each with its policies, its match in words, its end and its reason."""
    result = CliRunner().invoke(command, ["--policies", str(folder)])
    assert result.exit_code == 0
    heads = [line for line in result.stdout.splitlines() if line and line[0] != " "]
    soonest, later, ended = heads
    mentions(soonest, "a: in force", to_second(LATER), "(in 4h")
    mentions(later, "b: in force", to_second(LATEST), "(in 49d")
    assert ended == "c: ended 2d1h ago"
    wording("\n".join(timeless(head) for head in heads))
    first = result.stdout.split("\n\n")[0].splitlines()[1:]
    assert [" ".join(line.split()) for line in first] == [
        "policies all policies",
        "match namespaces research; roles worker",
        "reason Anna looks for a leak.",
    ]


def test_those_that_have_ended_can_be_left_out(folder: Path) -> None:
    """Where nobody could be asked, nothing is said of pods."""
    result = CliRunner().invoke(command, ["--policies", str(folder), "--in-force", "-o", "json"])
    found = json.loads(result.stdout)["exceptions"]
    assert [each["name"] for each in found] == ["a", "b"]
    assert found[1] == {
        "name": "b",
        "inForce": True,
        "until": to_second(LATEST),
        "policies": ["strict"],
        "match": {"namespaces": ["research"], "roles": ["worker"]},
        "reason": "Anna looks for a leak.",
        "pods": None,
    }


def test_an_unreadable_document_hides_no_other_exception(folder: Path) -> None:
    """All others are shown, and the exit code says that it was not all."""
    broken = exception("broken", LATER).replace(to_second(LATER), "2026-02-30T00:00:00Z")
    (folder / "broken.yaml").write_text(broken)
    for form in ("text", "json"):
        result = CliRunner().invoke(command, ["--policies", str(folder), "-o", form])
        assert result.exit_code == 2
        mentions(result.stderr, "broken.yaml:", "spec.until", "2026-02-30")
        assert "Anna looks" in result.stdout


def pod_that_passed(phase: str, stamp: str) -> dict[str, Any]:
    """A pod as a list has it."""
    metadata = {"name": "p", "namespace": "n", "annotations": {names.PLACEMENT: stamp}}
    return {"metadata": metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(("code", "pods"), [(200, {"a": 2, "b": 1}), (403, None)])
def test_live_pods_are_counted_by_their_stamps(
    tmp_path: Path, code: int, pods: dict[str, int] | None
) -> None:
    """What is over does not count, nor what cannot be read; who may not list pods is told so."""
    both, one = '{"exceptions":{"a":["p"],"b":["p"]}}', '{"exceptions":{"a":["p"]}}'
    listed = [pod_that_passed("Running", text) for text in (both, one, "", "[", '{"set":"x"}')]
    listed += [pod_that_passed("Succeeded", both), {"metadata": {"name": "bare"}}]

    group = "/apis/fairlead.dev/v1alpha1"
    admission = "/apis/admissionregistration.k8s.io/v1"
    there: dict[str, Any] = {f"{group}/{each}": () for each in names.POLICY_RESOURCES.values()}
    there |= {"/api/v1/pods": listed, f"/api/v1/namespaces/{names.NAMESPACE}/pods": ()}
    for kind in ("mutating", "validating"):
        there[f"{admission}/{kind}webhookconfigurations/fairlead"] = {"webhooks": []}
    found = answer_of(there, tmp_path, of_cluster, ["/api/v1/pods"] if code == 403 else ())
    assert found.pods == pods
    assert any("may not list pods" in each for each in found.notes) == (pods is None)
    # This cluster sends pods to a webhook, and no policies.
    line_with(found.notes, "the webhook serves policies from files", "in the cluster")


def test_a_cluster_in_trouble_is_not_taken_for_a_missing_right(tmp_path: Path) -> None:
    """Who asked for pods that could not be listed is not told that they may not be."""

    async def answer(request: Request, to: Answer) -> None:
        if request.path == "/api/v1/pods":
            await to.status(500, "InternalError", "etcd is gone")
        else:
            await to.json({"metadata": {"resourceVersion": "1"}, "items": []})

    async def main() -> None:
        async with fake_api(answer) as api, client_of(api, tmp_path) as client:
            await of_cluster(client)

    with pytest.raises(ClusterError, match="etcd is gone"):
        asyncio.run(main())


def test_an_empty_result_is_reported(tmp_path: Path, wording: Wording) -> None:
    """None at all, or none in force any more."""
    file = tmp_path / "p.yaml"
    for text, facts in ((STRICT, ["No exceptions"]), (exception("c", EARLIER), ["in force"])):
        file.write_text(text)
        result = CliRunner().invoke(command, ["--policies", str(file), "--in-force"])
        assert result.exit_code == 0
        mentions(result.stdout, *facts)
        wording(result.stdout)


def test_what_cannot_be_read_is_noted_and_the_others_are_shown(folder: Path) -> None:
    """A document that is wrong hides no other one."""
    (folder / "wrong.yaml").write_text(exception("wrong", LATER).replace("reason:", "raeson:"))
    result = CliRunner().invoke(command, ["--policies", str(folder)])
    assert "a: in force" in result.stdout
    assert "did you mean 'reason'?" in result.stderr


def test_a_folder_without_a_policy_file_is_not_one_without_exceptions(
    tmp_path: Path, wording: Wording
) -> None:
    """It is most likely not the folder that was meant."""
    result = CliRunner().invoke(command, ["--policies", str(tmp_path)])
    assert result.exit_code == 2
    mentions(result.stderr, "no policy file", tmp_path)
    wording(result.stderr, {tmp_path: "TMP"})


def test_two_places_are_not_one_set(folder: Path) -> None:
    """The cluster's exceptions, or those of files."""
    result = CliRunner().invoke(command, ["--policies", str(folder), "--policies", "cluster"])
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("match", "words"),
    [
        (
            {"namespaces": ["a", "b-*"], "coordinator": False},
            "namespaces a, b-*; coordinator false",
        ),
        (
            {
                "podSelector": {
                    "matchLabels": {"b": "c"},
                    "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x", "y"]}],
                }
            },
            "podSelector b=c, a NotIn [x, y]",
        ),
        ({"roles": ["ps"], "namespaceSelector": {}}, "namespaceSelector any; roles ps"),
        ({"replicaIndexes": [0, 1]}, "replicaIndexes 0, 1"),
        ({"serviceAccounts": ["trainer", "b-*"]}, "serviceAccounts trainer, b-*"),
    ],
)
def test_a_match_is_described_in_text(match: dict[str, object], words: str) -> None:
    """Every condition that is given, by its name."""
    assert describe_match(Match.model_validate(match, by_alias=True)) == words


def test_explain_says_by_which_exception_a_policy_is_set_aside(
    tmp_path: Path, wording: Wording
) -> None:
    """Until when and why; for programs as well."""
    files = Files(tmp_path, explain.command)
    given = [STRICT, exception("anna", LATER), exception("old", EARLIER)]
    stdout = files.on(POD, policies=given).stdout
    text = " ".join(stdout.split())
    subject = line_with(stdout, "Pod/mnist")
    mentions(subject, "unchanged", "exceptions", "set aside")
    mentions(text, "set aside strict exception anna", to_second(LATER), "(in 4h")
    assert "): Anna looks for a leak." in text
    wording(subject)
    wording(timeless(text[text.index("set aside strict") :]))
    (pod,) = json.loads(files.on(POD, "-o", "json", policies=given).stdout)["pods"]
    (told,) = pod["exceptions"]
    assert (told["name"], told["inForce"], told["policies"]) == ("anna", True, ["strict"])
    assert pod["warnings"] == []


def test_explain_says_that_an_exception_has_ended(tmp_path: Path, wording: Wording) -> None:
    """Beside what the policy is for, and in the warning that the author would get."""
    files = Files(tmp_path, explain.command)
    *_, policies, _, warnings = files.on(
        POD, policies=[STRICT, exception("old", EARLIER)]
    ).stdout.split("\n\n")
    applies = " ".join(policies.split("\n", 1)[1].split())
    mentions(applies, "applies strict All need a.", "exception old", "ended 2d1h ago")
    mentions(warnings, "exception old", to_second(EARLIER), "set aside")
    wording(applies)
    wording(timeless(warnings))


def test_mutate_notes_what_is_set_aside(tmp_path: Path, wording: Wording) -> None:
    """On stderr, whatever is printed."""
    files = Files(tmp_path, mutate.command)
    for output in ("diff", "name", "patch", "yaml"):
        result = files.on(POD, "-o", output, policies=[STRICT, exception("anna", LATER)])
        mentions(result.stderr, "policy strict", "set aside", "exception anna", to_second(LATER))
    wording(timeless(result.stderr))


def test_check_warns_of_what_has_ended_and_of_what_lasts_long(
    folder: Path, wording: Wording
) -> None:
    """At their lines; a file of exceptions alone is worth checking, too."""
    (folder / "long.yaml").write_text(exception("long", NOW + timedelta(days=200)))
    result = CliRunner().invoke(check.command, [str(folder)])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    long, ended = lines[:2]
    mentions(long, "long.yaml:", ": warning: spec.until: ", "199 days")
    mentions(ended, "p.yaml:", ": warning: spec.until: ", "ended")
    for line in (long, ended):
        wording(line[line.index("warning: ") :])
    mentions(lines[-1], "1 policy", "no classes", "4 exceptions", "hash ")
    alone = CliRunner().invoke(check.command, [str(folder / "long.yaml"), "-o", "json"])
    assert json.loads(alone.stdout)["exceptions"] == ["long"]
