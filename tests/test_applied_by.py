"""Which tool applies an installation, by the marks of each, and its command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.wording import Wording
from webhook import names
from webhook.applied_by import Applier, applied_by, manager_of

Json = dict[str, Any]


def an_object(
    labels: Json | None = None,
    annotations: Json | None = None,
    managers: Mapping[str, str] | None = None,
) -> Json:
    """With managers of fields, and when each wrote last."""
    fields = [{"manager": name, "time": at} for name, at in (managers or {}).items()]
    return {
        "metadata": {
            "name": "any",
            "labels": labels or {},
            "annotations": annotations or {},
            "managedFields": fields,
        }
    }


HELM = an_object(
    {names.MANAGED_BY: "Helm"},
    {names.HELM_RELEASE: "ml", "meta.helm.sh/release-namespace": "tools"},
)


def applied(found: Json, operation: str) -> Json:
    """The object as helm wrote it, on the server's side or by a patch."""
    fields = [{"manager": "helm", "operation": operation, "time": "2026-01-01T00:00:00Z"}]
    return {"metadata": {**found["metadata"], "managedFields": fields}}


KEPT = an_object(
    {names.MANAGED_BY: "Helm"}, {names.HELM_RELEASE: "ml", "helm.sh/resource-policy": "keep"}
)
ARGO = {"argocd.argoproj.io/tracking-id": "ml:apps/Deployment:fairlead-system/any"}
FLUX = "kustomize.toolkit.fluxcd.io"
FLUX_HELM = "helm.toolkit.fluxcd.io"
CASES = {
    "helm": (HELM, Applier("Helm", "ml", "tools")),
    "helm-without-annotations": (
        an_object({names.MANAGED_BY: "Helm"}),
        Applier("Helm", "RELEASE", names.NAMESPACE),
    ),
    "helm-on-the-server": (
        applied(HELM, "Apply"),
        Applier("Helm", "ml", "tools", on_server=True),
    ),
    "helm-by-merge-patches": (applied(HELM, "Update"), Applier("Helm", "ml", "tools")),
    "argo-cd": (an_object(None, ARGO), Applier("Argo CD", "ml", kind="Application")),
    "argo-cd-by-its-label": (
        an_object({"argocd.argoproj.io/instance": "ml"}),
        Applier("Argo CD", "ml", kind="Application"),
    ),
    "argo-cd-by-the-instance": (
        an_object(
            {"app.kubernetes.io/instance": "ml"},
            managers={"argocd-controller": "2026-01-01T00:00:00Z"},
        ),
        Applier("Argo CD", "ml", kind="Application"),
    ),
    "flux": (
        an_object({f"{FLUX}/name": "ml", f"{FLUX}/namespace": "flux-system"}),
        Applier("Flux", "ml", "flux-system", "Kustomization"),
    ),
    "flux-with-helm": (
        an_object(
            {
                **HELM["metadata"]["labels"],
                f"{FLUX_HELM}/name": "ml",
                f"{FLUX_HELM}/namespace": "flux-system",
            },
            HELM["metadata"]["annotations"],
        ),
        Applier("Flux", "ml", "flux-system", "HelmRelease"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_tool_is_known_by_what_it_writes(case: str, wording: Wording) -> None:
    """The command is that of the tool, with the choice in its words."""
    found, applier = CASES[case]
    assert manager_of(found) == applier
    assert applied_by([None, an_object(), found]) == applier
    wording(str(applier))
    wording(applier.command())
    wording(applier.command("--nodes", "--set nodes=true", "nodes"))
    wording(applier.removal())


def test_what_only_looks_like_a_mark_is_none() -> None:
    """Charts and people write the label `instance`; other tools are named as managers, too."""
    assert manager_of(an_object({"app.kubernetes.io/instance": "ml"})) is None
    assert manager_of(an_object({names.MANAGED_BY: "fairlead"})) is None
    assert manager_of({}) is None


def test_definitions_that_helm_has_kept_do_not_make_an_installation_its_own() -> None:
    """They stay when a release ends. Beside other objects of it they are part of it."""
    assert applied_by([KEPT, an_object()]) == Applier()
    assert applied_by([KEPT, HELM]) == Applier("Helm", "ml", "tools")


@pytest.mark.parametrize(
    ("managers", "tool"),
    [
        ({}, "fairlead install"),
        ({"fairlead-install": "2026-01-01T00:00:00Z"}, "fairlead install"),
        ({"kubectl": "2026-01-01T00:00:00Z"}, "kubectl"),
        ({"kubectl-client-side-apply": "2026-01-01T00:00:00Z"}, "kubectl"),
        # Who labels or edits an object has not installed it.
        ({"kubectl-label": "2026-01-01T00:00:00Z"}, "fairlead install"),
        (
            {"kubectl": "2026-01-01T00:00:00Z", "fairlead-install": "2026-01-02T00:00:00Z"},
            "fairlead install",
        ),
        (
            {"kubectl": "2026-01-03T00:00:00Z", "fairlead-install": "2026-01-02T00:00:00Z"},
            "kubectl",
        ),
    ],
)
def test_of_install_and_kubectl_the_later_applies(
    managers: dict[str, str], tool: str, wording: Wording
) -> None:
    """Both write no mark but their name as the manager of fields."""
    applier = applied_by([an_object(managers=managers)])
    assert applier == Applier(tool)
    wording(applier.command("--nodes", "--set nodes=true", "nodes"))


def test_names_that_others_wrote_are_quoted_in_commands() -> None:
    """An annotation may hold any text, and people paste commands."""
    hostile = an_object(None, {names.HELM_RELEASE: "x; rm -rf /"})
    assert applied_by([hostile]).command().startswith("helm upgrade 'x; rm -rf /' CHART")
    assert applied_by([hostile]).removal().startswith("helm uninstall 'x; rm -rf /' --namespace")
