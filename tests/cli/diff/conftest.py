"""What holds for every test of `fairlead diff`."""

from __future__ import annotations

from tests.questions.diff.repository import no_repository_but_the_tests_own

__all__ = ["no_repository_but_the_tests_own"]
