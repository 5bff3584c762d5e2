"""`python -m tests.manifests`: write every generated file anew (`make manifests`)."""

from __future__ import annotations

import shutil

from tests.manifests.generated import MANIFESTS, files


def main() -> None:
    """Write what is made, and take away the components that are made no longer."""
    for stale in (MANIFESTS / "components").glob("source-*"):
        shutil.rmtree(stale)
    for name, text in files().items():
        path = MANIFESTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
