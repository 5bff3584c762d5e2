"""The real helm of both majors and an old and a new kustomize, and what the chart comes to."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.control_planes import build_before_tests
from tests.fast_yaml import load_all_yaml
from tests.go_programs import HELMS, KUSTOMIZES, obtain_program
from tests.manifests.chart import CHART
from tests.manifests.kustomize import Json
from webhook import names

Template = Callable[[Mapping[str, Any]], tuple[Json, ...]]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build them before the first test, on the first run ever."""
    programs = (*HELMS.values(), *KUSTOMIZES.values())
    build_before_tests(session, "helm", lambda: [obtain_program(program) for program in programs])


@pytest.fixture(scope="session", params=HELMS)
def helm(request: pytest.FixtureRequest) -> Path:
    """The real helm, one major after the other."""
    return obtain_program(HELMS[request.param])


@pytest.fixture(scope="session")
def template() -> Template:
    """Gives the chart's objects with these values, by the newest helm."""
    return templating(obtain_program(HELMS["helm-4"]))


def templating(helm: Path, chart: Path = CHART) -> Template:
    """The same by any helm, of a chart that may be a copy."""

    def rendered(values: Mapping[str, Any]) -> tuple[Json, ...]:
        options = ["--namespace", names.NAMESPACE, "--values", "-"]
        done = subprocess.run(
            [helm, "template", "fairlead", chart, *options],
            input=json.dumps(values),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return tuple(each for each in load_all_yaml(done.stdout) if each)

    return rendered
