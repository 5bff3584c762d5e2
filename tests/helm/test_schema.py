"""What the chart's schema and template admit: null, names of files, quantities, ports."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from tests.fast_yaml import load_yaml
from tests.helm.conftest import Template, templating
from tests.helm.test_equal import by_name
from tests.helm.test_values import ALL, CASES, DEFAULTS, SCHEMA, merged, nested
from tests.manifests.chart import CHART
from tests.manifests.kustomize import Json
from tests.manifests.value_rows import described
from tests.manifests.value_schemas import PORT, field_of
from tests.wording import mentions
from webhook import names
from webhook.placement.quantity import InvalidQuantity, nanos
from webhook.server.folder import Folder

# As `--values`, or as the chart's own values.yaml, into which Flux writes the files of values.
Way = Literal["given", "own"]
# Beside the cases: a value of each kind of mapping and list.
MORE: Final = {
    "commonLabels": {"example.com/common": "yes"},
    "policyFiles": {"mine.yaml": "{}"},
    "webhookConfigurations.namespaceSelector": {
        "matchExpressions": [{"key": "tier", "operator": "Exists"}]
    },
    "webhook.affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": []}]
            }
        }
    },
}
PATHS: Final = [path for path, _, _ in described(SCHEMA, DEFAULTS)]


def every_value() -> Json:
    """All values, each with something that is no default."""
    values = merged(DEFAULTS, ALL)
    for path, value in ({path: case.value for path, case in CASES.items()} | MORE).items():
        values = merged(values, nested(path, value))
    return values


def with_nulls(value: Any, schema: Json) -> Any:
    """The value with null in each field that it lacks and its schema has, at every depth."""
    for part in (schema, *schema.get("allOf", ())):
        if "$ref" in part:
            schema = SCHEMA["definitions"][part["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        return [with_nulls(each, schema["items"]) for each in value]
    if not isinstance(value, dict):
        return value
    fields = {key: each for key, each in schema.get("properties", {}).items() if each}
    patterns = [each for each in schema.get("patternProperties", {}).values() if each]
    free: Json = schema.get("additionalProperties") or next(iter(patterns), {})
    absent = {*fields, *(["none.yaml"] if free else [])} - {*schema.get("required", ())}
    return {
        **dict.fromkeys(absent),
        **{key: with_nulls(each, fields.get(key, free)) for key, each in value.items()},
    }


def rendered(helm: Path, way: Way, values: Mapping[str, Any], folder: Path) -> tuple[Json, ...]:
    """The objects of the chart with these values, given in this way."""
    if way == "given":
        return templating(helm)(values)
    return templating(helm, chart_with(values, folder))({})


def chart_with(values: Mapping[str, Any], folder: Path) -> Path:
    """A copy of the chart with these values as its own, nulls among them."""
    copy = folder / "fairlead"
    subprocess.run(["cp", "-r", CHART, copy], check=True)
    (copy / "values.yaml").write_text(json.dumps(values))
    return copy


@pytest.mark.parametrize("way", ["given", "own"])
def test_null_leaves_a_field_out_wherever_it_is(helm: Path, way: Way, tmp_path: Path) -> None:
    """Whether or not the chart has a default for it, in every value and at every depth."""
    values = every_value()
    nulls = {key: with_nulls(each, SCHEMA["properties"][key]) for key, each in values.items()}
    assert json.dumps(nulls).count("null") > 100
    assert nulls["podSecurityContext"]["runAsUser"] is None
    assert nulls["webhook"]["resources"]["limits"]["none.yaml"] is None
    wanted = by_name(templating(helm)(values))
    assert by_name(rendered(helm, way, nulls, tmp_path)) == wanted


def test_the_profile_for_openshift_can_be_the_charts_own_values(
    helm: Path, template: Template, tmp_path: Path
) -> None:
    """Flux merges `valuesFiles` into the chart's values.yaml, and keeps null."""
    profile = load_yaml((CHART / "openshift.yaml").read_text())
    found = rendered(helm, "own", merged(DEFAULTS, profile), tmp_path)
    assert by_name(found) == by_name(template(profile))


@pytest.mark.parametrize("way", ["given", "own"])
def test_a_whole_value_cannot_be_null(helm: Path, way: Way, tmp_path: Path) -> None:
    """Each that is null is named."""
    values: Json = {}
    for path in PATHS:
        values = merged(values, nested(path, None))
    chart = chart_with(values, tmp_path) if way == "own" else CHART
    refused = subprocess.run(
        [helm, "template", "fairlead", chart, "--namespace", names.NAMESPACE, "--values", "-"],
        input=json.dumps(values),
        capture_output=True,
        text=True,
    )
    assert refused.returncode != 0
    named = {*re.findall(r"[\w.-]+", refused.stderr)}
    assert {path.rpartition(".")[2] for path in PATHS} <= named


def test_policy_files_have_names_that_the_webhook_reads(
    helm: Path, template: Template, tmp_path: Path
) -> None:
    """Of the keys that a ConfigMap can have; any other would be a policy without effect."""
    keys = [
        *("a.yaml", "b.yml", "c.json", "D.YAML", "-e.Yml", "_f.JSON", "g.h..yaml", "test.yaml"),
        *("mine", "mine.txt", ".a.yaml", "..a.yaml", "a.test.yaml", "A.TEST.YML", "yaml", ".json"),
        *("a.yaml.bak", "a.yam", "a.test.json"),
    ]
    for key in keys:
        (tmp_path / key).write_text("{}")
    read = {Path(path).name for path in Folder(tmp_path).read()}
    assert len(read) == 9
    found = template({"policyFiles": dict.fromkeys(read, "{}")})
    (data,) = [each["data"] for each in found if each["kind"] == "ConfigMap"]
    assert data.keys() == read
    for key in {*keys} - read:
        refused = refusal(helm, {"policyFiles": {"a.yaml": "{}", key: "{}"}})
        mentions(refused, "/policyFiles", key)


def refusal(helm: Path, values: Mapping[str, Any]) -> str:
    """What helm says of values that it refuses."""
    done = subprocess.run(
        [helm, "template", "fairlead", CHART, "--namespace", names.NAMESPACE, "--values", "-"],
        input=json.dumps(values),
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0, values
    return done.stderr


@pytest.mark.parametrize(
    ("webhook", "controller", "facts"),
    [
        ({"port": 8081}, {}, ["webhook.healthPort: 8081 is webhook.port"]),
        ({"healthPort": 8443}, {}, ["webhook.healthPort: 8443 is webhook.port"]),
        ({}, {"healthPort": 8443}, []),
        ({"hostNetwork": True}, {"healthPort": 8443}, []),
        (
            {"hostNetwork": True},
            {"hostNetwork": True, "healthPort": 8443},
            ["controller.healthPort: 8443 is webhook.port", "network of the nodes"],
        ),
        (
            {"hostNetwork": True, "port": 9000, "healthPort": 9000},
            {"hostNetwork": True, "healthPort": 9000},
            ["webhook.healthPort: 9000", "controller.healthPort: 9000"],
        ),
    ],
    ids=str,
)
def test_no_two_ports_of_one_network_are_the_same(
    helm: Path, webhook: Json, controller: Json, facts: list[str]
) -> None:
    """Each pod has a network, and the nodes have one for both programs."""
    values = {"webhook": webhook, "controller": controller}
    if facts:
        mentions(refusal(helm, values), *facts)
    else:
        assert templating(helm)(values)


def test_every_port_of_the_values_is_compared() -> None:
    """The template finds ports by the place of the value in the pods."""
    rows = load_yaml((CHART / "files" / "places.yaml").read_text())
    compared = {each["value"] for each in rows if each["at"].endswith("/containerPort")}
    assert compared == {path for path in PATHS if PORT.items() <= schema_of(path).items()}


def schema_of(path: str) -> Json:
    """The schema of a value, by its path with dots."""
    found = SCHEMA
    for key in path.split("."):
        found = found["properties"][key]
    return found


@pytest.mark.parametrize("text", ["500m", "16Gi", "1e3", "0.5", ".5", "1Gib", "1 Gi", "", "1Mi2"])
def test_the_schema_knows_quantities(text: str) -> None:
    """As the placement of pods does."""
    (limits,) = [field_of("ResourceRequirements", "limits")["additionalProperties"]]
    try:
        nanos(text)
    except InvalidQuantity:
        assert not re.search(limits["pattern"], text)
    else:
        assert re.search(limits["pattern"], text)


def test_labels_of_some_objects_count_more_than_those_of_all(template: Template) -> None:
    """Of one key in `commonLabels` and in the labels of certain objects."""
    rows = load_yaml((CHART / "files" / "places.yaml").read_text())
    special = {row["value"]: row["kind"] for row in rows if row["at"] == "metadata/labels"}
    assert special.pop("commonLabels") == ".*"
    values = merged(ALL, {"commonLabels": {"example.com/of": "all"}})
    for path in special:
        values = merged(values, nested(path, {"example.com/of": path}))
    assert special
    for each in template(values):
        wanted = [path for path, kinds in special.items() if re.fullmatch(kinds, each["kind"])]
        assert [each["metadata"]["labels"]["example.com/of"]] == (wanted or ["all"])
