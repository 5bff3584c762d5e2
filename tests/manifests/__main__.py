"""`python -m tests.manifests`: write every generated file again (`make manifests`)."""

from __future__ import annotations

import shutil
import sys

from tests.manifests.chart import write_chart
from tests.manifests.generated import MANIFESTS, files
from webhook.progress import Lines
from webhook.sandbox.binaries import obtain_kubectl


def main() -> None:
    """Write what is made of the code, then what kustomize makes of the whole."""
    for stale in (MANIFESTS / "components").glob("source-*"):
        shutil.rmtree(stale)
    for name, text in files().items():
        path = MANIFESTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    write_chart(obtain_kubectl(Lines(sys.stderr)))


if __name__ == "__main__":
    main()
