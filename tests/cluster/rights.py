"""Which rights an account has, and which of them it has made use of, by the API server's word."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cluster.installed import Installed
from tests.eventually import eventually
from webhook import names

# API group, resource with subresource, verb, and the name that it is granted for; else empty.
Right = tuple[str, str, str, str]


def granted(installed: Installed, account: str) -> set[Right]:
    """What the roles that are bound to an account allow, for each name that they give."""
    found: set[Right] = set()
    for kind in ("rolebindings", "clusterrolebindings"):
        for binding in installed.home.items(kind):
            subjects = [
                (each.get("namespace"), each["name"]) for each in binding.get("subjects") or ()
            ]
            if (names.NAMESPACE, account) not in subjects:
                continue
            role = binding["roleRef"]
            rules = installed.home.get(f"{role['kind'].lower()}s", role["name"])["rules"]
            found |= {
                (group, resource, verb, name)
                for rule in rules
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
                for name in rule.get("resourceNames") or ("",)
            }
    return found


def used(installed: Installed, account: str, wanted: set[Right]) -> set[Right]:
    """The rights that an account has made use of, once they are those `wanted`, or too late."""

    def so_far() -> set[Right]:
        return {right for right, _ in _requests(installed, account, wanted)}

    def explain() -> str:
        found = so_far()
        return f"not used: {sorted(wanted - found)}; not granted: {sorted(found - wanted)}"

    # The audit log is written a moment later, and some steps are due after seconds.
    eventually(
        f"{account} has used its rights", lambda: so_far() == wanted, explain=explain, budget=120
    )
    return so_far()


def refused(installed: Installed, account: str) -> set[Right]:
    """What an account has asked for in vain."""
    requests = _requests(installed, account, set())
    return {right for right, decision in requests if decision == "forbid"}


def _requests(
    installed: Installed, account: str, rights: set[Right]
) -> Iterator[tuple[Right, str]]:
    """What an account has asked the API server for, and how that was decided.

    Of those `rights` that are for a name, the name counts.
    """
    user = f"system:serviceaccount:{names.NAMESPACE}:{account}"
    named = {right[:3] for right in rights if right[3]}
    for event in installed.audited():
        about = event.get("objectRef", {})
        if event["user"]["username"] != user or "resource" not in about:
            continue
        whole = "/".join(about[key] for key in ("resource", "subresource") if key in about)
        right = (about.get("apiGroup", ""), whole, event["verb"])
        name = about.get("name", "") if right in named else ""
        # A webhook, or a policy, forbids with other words.
        yield (*right, name), event["annotations"]["authorization.k8s.io/decision"]
