"""Every command over other projects' files: no traceback, nothing silent, no second thoughts.

    python -m tools.corpora FOLDER ... --policies policies/defaults-by-kind

FOLDERs are checkouts of whatever has manifests: Kubeflow's training operator and trainer, the MPI
operator, JobSet, KubeRay, the Spark operator, Dask, MLRun, Polyaxon, Volcano, Argo. What they hold
is read, and never kept. For each YAML or JSON file:

- `check`, `preview` and `explain` end without a traceback, and by an exit code other than 0 only
  with words on stderr; `preview` says something of a file, be it that no pod is in it;
- what `preview -o yaml` prints is unchanged when it is mutated again;
- of every object of a kind in `tools.pod_counts`, Fairlead's reader finds as many pods as that
  module counts; if there are none, a note says so;
- of every other object that has a list of containers somewhere, the reader finds a pod template, or
  a note names it;
- a Polyaxonfile becomes a Run or an error by `run convert`, and that Run passes `preview -o pods`.

Prints a line for each fault and a table of counts; exit code 1 if there was one.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from click.testing import CliRunner

from tools import pod_counts
from webhook.cli import fairlead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SUFFIXES: Final = (".yaml", ".yml", ".json")
# What is larger was made by a program, such as a definition of a custom resource.
_LONGEST: Final = 200_000
_MANIFEST: Final = re.compile(rb"^\s*\"?(apiVersion|kind)\"?\s*:", re.MULTILINE)
_POLYAXON: Final = re.compile(rb"^(version:\s*[0-9]|kind:\s*(component|operation)\b)", re.MULTILINE)
# Kinds that may have an example of a pod, and make none.
_DEFINE_PODS: Final = ("CustomResourceDefinition",)
_TEMPLATED: Final = b"{{"


class Ended(NamedTuple):
    """How a command ended: its exit code, what it printed, and its traceback if it had one."""

    code: int
    out: str
    err: str
    traceback: str


def call(*arguments: str) -> Ended:
    """`fairlead ARGUMENTS`, in this process."""
    result = CliRunner().invoke(fairlead, list(arguments))
    trace = ""
    if result.exception and not isinstance(result.exception, SystemExit):
        from webhook.errors import FairleadError

        # `main` tells these, and ends with 1.
        if isinstance(result.exception, FairleadError):
            return Ended(1, result.stdout, str(result.exception), "")
        trace = "".join(traceback.format_exception(result.exception))
    return Ended(result.exit_code, result.stdout, result.stderr, trace)


def faults(file: Path, policies: str, counts: Counter[str]) -> Iterator[str]:
    """Yield what is wrong with what the commands say of one file."""
    text = file.read_bytes()
    if _POLYAXON.search(text):
        yield from _converted(file, policies, counts)
    if not _MANIFEST.search(text):
        return
    if len(text) > _LONGEST:
        counts[f"files of more than {_LONGEST} bytes, which were not read"] += 1
        return
    yield from _miscounted(file, counts)
    # A template of a chart is no YAML, and a parameter of a workflow is no value.
    if _TEMPLATED in text:
        return
    given = ("-f", str(file), "--policies", policies)
    for command in (["check", str(file)], ["explain", *given]):
        yield from _of(command, call(*command), counts)
    command = ["preview", *given, "-o", "yaml"]
    ended = call(*command)
    yield from _of(command, ended, counts)
    if ended.code == 0 and not ended.out.strip() and not ended.err.strip():
        yield "preview: exit code 0, and not a word"
    if ended.out.strip() and not ended.traceback:
        yield from _again(ended.out, policies, counts)


def _miscounted(file: Path, counts: Counter[str]) -> Iterator[str]:
    """Objects of which Fairlead's reader and the second count disagree."""
    import yaml

    from webhook.questions.objects import read_objects
    from webhook.workloads.template_search import pod_templates, unread

    try:
        plain = list(pod_counts.documents(file))
    except (yaml.YAMLError, ValueError):
        counts["files that are no YAML, such as templates of charts"] += 1
        return
    problems: list[str] = []
    objects = read_objects([file], problems)
    if problems or len(objects) != len(plain):
        counts["files that Fairlead refuses, and whose pods were not counted twice"] += 1
        return
    for document, thing in zip(objects, plain, strict=True):
        expected = pod_counts.count_pods(thing, plain)
        if expected is None:
            if document.kind not in _DEFINE_PODS and _has_containers(thing):
                counts["objects of other kinds that have containers"] += 1
                if not pod_templates(document, objects) and not unread([document]):
                    yield f"{document.title}: has containers, and not a word"
            continue
        pod_count = sum(template.count or 0 for template in pod_templates(document, objects))
        counts["objects whose pods were counted twice"] += 1
        counts["pods counted twice"] += pod_count
        if pod_count != expected:
            yield f"{document.title}: {pod_count} pods, and {expected} by the second count"
        if not pod_count and not pod_templates(document, objects) and not unread([document]):
            yield f"{document.title}: no pods, and not a word"


def _has_containers(value: object) -> bool:
    """Return whether a list of containers is somewhere in the value."""
    if isinstance(value, dict):
        containers = value.get("containers")
        has_own = isinstance(containers, list) and any(
            isinstance(container, dict) for container in containers
        )
        return has_own or any(map(_has_containers, value.values()))
    return isinstance(value, list) and any(map(_has_containers, value))


def _again(out: str, policies: str, counts: Counter[str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "printed.yaml"
        printed.write_text(out)
        command = ["preview", "-f", str(printed), "--policies", policies, "-o", "yaml"]
        ended = call(*command)
    counts["mutated again"] += 1
    yield from _of(command, ended, counts)
    if ended.out != out:
        yield f"preview: what it prints is changed when it is mutated again\n{ended.err[:500]}"


def _converted(file: Path, policies: str, counts: Counter[str]) -> Iterator[str]:
    command = ["run", "convert", "-f", str(file)]
    ended = call(*command)
    yield from _of(command, ended, counts)
    if ended.code:
        return
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run.yaml"
        run.write_text(ended.out)
        command = ["preview", "-f", str(run), "--policies", policies, "-o", "pods"]
        ended = call(*command)
    yield from _of(command, ended, counts)
    if ended.code:
        yield f"preview refuses what run convert printed: {ended.err[:500]}"


def _of(command: Sequence[str], ended: Ended, counts: Counter[str]) -> Iterator[str]:
    name = " ".join(command[:2]) if command[0] == "run" else command[0]
    counts[f"{name}: exit code {ended.code}"] += 1
    if ended.traceback:
        yield f"{name}: a traceback\n{ended.traceback}"
    elif ended.code and not (ended.err.strip() or ended.out.strip()):
        yield f"{name}: exit code {ended.code}, and not a word"


def files(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the YAML and JSON files below the folders, hidden ones left out."""
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
            if file.suffix.lower() in _SUFFIXES and file.is_file() and not hidden:
                yield file


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and tell what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--policies", required=True, metavar="DIR")
    given = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    fault_count = 0
    for file in files(given.folders):
        counts["files"] += 1
        for fault in faults(file, given.policies, counts):
            fault_count += 1
            print(f"{file}: {fault}", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    print(f"{fault_count} faults")
    return 1 if fault_count else 0


if __name__ == "__main__":
    sys.exit(main())
