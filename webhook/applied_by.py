"""By which tool an installation is applied, and the command that applies it again.

The marks are those that each tool writes itself: Helm (pkg/action/validate.go, the ownership of an
object), Argo CD (docs, "Resource Tracking"; its field manager), and Flux (kustomize-controller and
helm-controller label all that they apply with the object that they apply it for).
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Json = Mapping[str, Any]

HELM: Final = "Helm"
ARGO_CD: Final = "Argo CD"
FLUX: Final = "Flux"
KUBECTL: Final = "kubectl"
INSTALL: Final = "fairlead install"

_HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_HELM_POLICY: Final = "helm.sh/resource-policy"
# The field manager of helm, whose operation is Apply for what it applied on the server's side.
_HELM_MANAGER: Final = "helm"
_ARGO_ID: Final = "argocd.argoproj.io/tracking-id"
_ARGO_LABEL: Final = "argocd.argoproj.io/instance"
# Other tools write this label too, so it names an Application only beside Argo CD's field manager.
_INSTANCE: Final = "app.kubernetes.io/instance"
_ARGO_MANAGER: Final = "argocd-controller"
# Labels of Flux, by the kind of the object that they name.
_FLUX: Final = {
    "HelmRelease": "helm.toolkit.fluxcd.io",
    "Kustomization": "kustomize.toolkit.fluxcd.io",
}
# How the labels and annotations begin by which tools know what they have applied, and delete again
# what is not in their source any more. Argo CD tracks by _INSTANCE, or by its own.
TRACKING: Final = (
    names.LAST_APPLIED,
    "argocd.argoproj.io/",
    _INSTANCE,
    *(f"{group}/" for group in _FLUX.values()),
    "meta.helm.sh/",
)
# Of `kubectl apply`, with --server-side and without.
_KUBECTL: Final = ("kubectl", "kubectl-client-side-apply")


class Applier(NamedTuple):
    """The tool that applies an installation, and the object or release that it applies.

    kind: of that object, for Argo CD and Flux. on_server: for Helm, whether it applied objects on
    the server's side, as Helm 4 does.
    """

    tool: str = INSTALL
    name: str = ""
    namespace: str = ""
    kind: str = ""
    on_server: bool = False

    def __str__(self) -> str:
        """As the subject of a sentence."""
        if self.tool == HELM:
            return f"release {self.name} of Helm in namespace {self.namespace}"
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name} of {self.tool}" if self.kind else self.tool

    def command(self, options: str = "", values: str = "", component: str = "") -> str:
        """Return the command that applies the installation again, with a choice if one is given.

        options: of `fairlead install`, beside those of last time. values: options of helm.
        component: of the manifests.
        """
        name, namespace = quote(self.name), quote(self.namespace)
        if self.tool == HELM:
            upgrade = f"helm upgrade {name} CHART --namespace {namespace} --reset-then-reuse-values"
            # On the server's side helm refuses to write over what somebody else changed. Helm 3
            # does not know the option.
            side = "--server-side=false" if self.on_server else ""
            return " ".join(filter(None, (upgrade, side, values)))
        if self.tool == KUBECTL:
            added = f" with the component {component}" if component else ""
            return f"kubectl apply -k KUSTOMIZATION{added}"
        if self.tool == INSTALL:
            return f"{INSTALL} {options}".strip()
        again = f"argocd app sync {name}"
        if self.tool == FLUX:
            kind = self.kind.lower()
            again = f"flux reconcile {kind} {name} --namespace {namespace} --with-source"
        ways = (
            values and f"give {values} to the chart",
            component and f"add component {component}",
        )
        change = " or ".join(filter(None, ways))
        return f"{change}, in the source of {self}; then {again}" if change else again

    def removal(self) -> str:
        """Return the command that removes the installation; for Flux, if its object prunes."""
        name, namespace = quote(self.name), quote(self.namespace)
        if self.tool == HELM:
            return f"helm uninstall {name} --namespace {namespace}"
        if self.tool == ARGO_CD:
            return f"argocd app delete {name}"
        if self.tool == FLUX:
            return f"flux delete {self.kind.lower()} {name} --namespace {namespace}"
        return "fairlead uninstall"


def applied_by(objects: Iterable[Json | None]) -> Applier:
    """Return who applies an installation with these objects; `fairlead install` without a sign."""
    live_objects = [live_object for live_object in objects if live_object]
    # Helm keeps the definitions when a release ends. The next installation is anybody's.
    marks = [
        mark
        for live_object in live_objects
        if not kept_by_helm(live_object) and (mark := manager_of(live_object))
    ]
    if marks:
        return marks[0]
    times = {
        tool: max((_applied_at(live_object, *managers) for live_object in live_objects), default="")
        for tool, managers in ((INSTALL, (names.INSTALL_MANAGER,)), (KUBECTL, _KUBECTL))
    }
    return Applier(KUBECTL if times[KUBECTL] > times[INSTALL] else INSTALL)


def manager_of(live_object: Json) -> Applier | None:
    """Return the tool that keeps a description of this object; None if none does."""
    metadata = live_object.get("metadata") or {}
    labels = metadata.get("labels") or {}
    annotations = metadata.get("annotations") or {}
    for kind, group in _FLUX.items():
        if name := labels.get(f"{group}/name"):
            return Applier(FLUX, name, labels.get(f"{group}/namespace") or "NAMESPACE", kind)
    written = {
        (entry.get("manager"), entry.get("operation"))
        for entry in metadata.get("managedFields") or ()
    }
    by_argo_cd = _ARGO_MANAGER in {manager for manager, _ in written}
    if tracked := annotations.get(_ARGO_ID):
        return Applier(ARGO_CD, tracked.partition(":")[0], kind="Application")
    if labels.get(_ARGO_LABEL) or by_argo_cd:
        name = labels.get(_ARGO_LABEL) or labels.get(_INSTANCE) or "APPLICATION"
        return Applier(ARGO_CD, name, kind="Application")
    release = annotations.get(names.HELM_RELEASE)
    if release or labels.get(names.MANAGED_BY) == HELM:
        # The chart refuses any other namespace.
        namespace = annotations.get(_HELM_NAMESPACE) or names.NAMESPACE
        on_server = (_HELM_MANAGER, "Apply") in written
        return Applier(HELM, release or "RELEASE", namespace, on_server=on_server)
    return None


def kept_by_helm(live_object: Json) -> bool:
    """Return whether Helm leaves the object in the cluster when its release ends."""
    annotations = (live_object.get("metadata") or {}).get("annotations") or {}
    return annotations.get(_HELM_POLICY) == "keep"


def _applied_at(live_object: Json, *managers: str) -> str:
    metadata = live_object.get("metadata") or {}
    return max(
        (
            entry.get("time") or ""
            for entry in metadata.get("managedFields") or ()
            if entry.get("manager") in managers
        ),
        default="",
    )
