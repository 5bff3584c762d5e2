"""ServiceAccounts of the tests' own: a kubeconfig with a token, and rights one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.fast_yaml import load_yaml
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]


def account(kubectl: Kubectl, name: str, file: Path) -> Path:
    """Write a kubeconfig with a token of the account, which is made if it is not there."""
    if kubectl.run("get", "serviceaccount", name).returncode:
        kubectl("create", "serviceaccount", name)
    config = load_yaml(kubectl.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": kubectl("create", "token", name).strip()}
    config["contexts"][0]["context"]["namespace"] = kubectl.namespace or "default"
    file.write_text(yaml.safe_dump(config))
    return file


def grant(kubectl: Kubectl, account: str, name: str, *rules: Json) -> None:
    """Give the account these rights in its namespace."""
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    kubectl.create({**kind, "metadata": {"name": name}, "rules": list(rules)})
    subject = f"--serviceaccount={kubectl.namespace}:{account}"
    kubectl("create", "rolebinding", name, f"--role={name}", subject)


def grant_everywhere(kubectl: Kubectl, account: str, name: str, *rules: Json) -> None:
    """Give it these rights in the whole cluster; `name` is of the test's own."""
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    kubectl.create({**kind, "metadata": {"name": name}, "rules": list(rules)})
    subject = f"--serviceaccount={kubectl.namespace}:{account}"
    kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", subject)
