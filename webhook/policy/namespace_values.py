"""The values that policies take from labels of namespaces, in each namespace that they match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.identity import Identity
from webhook.placement.namespace_setting import NamespaceSetting
from webhook.policy.conditions import FIELDS
from webhook.policy.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.policy.conditions import Block
    from webhook.policy.policy_set import Policy

# Any pod: what these conditions read is of its namespace.
_POD: Final = Identity("", names.KINDS[0], None, None, None, "", coordinator=False)
# The match fields that a namespace decides alone.
_OF_NAMESPACES: Final = frozenset(
    field.document_name for field in FIELDS if field.subject in ("namespace", "namespace_labels")
)


class NamespaceValue(NamedTuple):
    """The value of one setting in one namespace: that of its label, or else the default.

    lacks: whether the namespace gives none. Without a default, the value is then empty
    """

    policy: str
    setting: NamespaceSetting
    namespace: str
    value: str
    lacks: bool

    @property
    def rejects(self) -> bool:
        """Whether pods of the namespace are rejected for want of a value."""
        return not self.value and not self.setting.is_default


def namespace_values(
    policies: Iterable[Policy], namespaces: Mapping[str, Mapping[str, str]]
) -> Iterator[NamespaceValue]:
    """Yield the value of each setting that has one from a namespace, policy by policy.

    `namespaces` are labels by name. Only those are considered whose pods the policy may match.
    """
    for policy in policies:
        settings = [w for w in policy.settings if isinstance(w, NamespaceSetting)]
        for name, labels in sorted(namespaces.items()) if settings else ():
            if may_match(policy, name, labels):
                for setting in settings:
                    value = labels.get(setting.label, "")
                    yield NamespaceValue(
                        policy.name, setting, name, value or setting.default, not value
                    )


def may_match(policy: Policy, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a policy may match a pod of the namespace."""
    subject = Subject(name, labels, {}, _POD)

    def holds(block: Block) -> bool:
        of_namespace = [c for c in block.conditions if c.name in _OF_NAMESPACES]
        return all(condition.holds(subject) for condition in of_namespace)

    if not holds(policy.match):
        return False
    return not any(
        holds(block)
        for block in policy.exclude
        if all(condition.name in _OF_NAMESPACES for condition in block.conditions)
    )
