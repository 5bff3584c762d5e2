"""`python -m tests.bench.playground`: how soon the playground is there, and answers a key.

In Chromium, as `make test-browser` finds it, over the command as a process: the example of
`fairlead demo`, and 200 policies of 20 teams with 100 pods and 200 nodes. Prints Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.document import circumstances
from tests.browser.conftest import find_browser
from tests.ui import served_pages

# The time from a key to the answer that is in the page, with the pause after the last key.
_KEY: Final = """
() => new Promise((resolve) => {
  const answer = document.getElementById("answer");
  const { shadowRoot } = document.querySelector("#manifests + .editor");
  const editor = shadowRoot.querySelector(".cm-content");
  editor.addEventListener("beforeinput", () => {
    const began = performance.now();
    new MutationObserver((_, observer) => {
      if (answer.hasAttribute("aria-busy")) return;
      observer.disconnect();
      requestAnimationFrame(() => resolve(performance.now() - began));
    }).observe(answer, { attributeFilter: ["aria-busy"] });
  }, { once: true });
})
"""
_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
_POLICY: Final = """\
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: p{at}}}
spec:
  priority: {at}
  match: {{podSelector: {{matchLabels: {{team: t{team}}}}}}}
  defaults: {{nodeSelector: {{key-{at}: a}}}}
"""
_POD: Final = """\
apiVersion: v1
kind: Pod
metadata: {{name: p{at}, labels: {{fairlead.dev/run: r{at}, team: t{team}}}}}
spec: {{containers: [{{name: c, image: i}}]}}
"""
_NODE: Final = "kind: Node\nmetadata: {{name: n{at}, labels: {{zone: z{at}}}}}\n"


def measure(browser: Browser, options: list[str], rounds: int) -> tuple[list[float], list[float]]:
    """Return first paints and answers to a key, in milliseconds."""
    paints, keys = [], []
    with served_pages.page(*options) as served:
        for _ in range(rounds):
            context = browser.new_context()
            tab = context.new_page()
            tab.goto(served.address)
            tab.wait_for_selector(".group", timeout=60_000)
            paints.append(float(tab.evaluate(_PAINT)))
            keys.append(_key(tab))
            context.close()
    return paints, keys


def _key(tab: Page) -> float:
    tab.locator("#manifests + .editor .cm-content").click()
    # What evaluates to a promise is awaited, and no key would ever come.
    tab.evaluate(f"void (window.answered = ({_KEY})())")
    tab.keyboard.type("#")
    return float(tab.evaluate("window.answered"))


def main() -> None:
    """Print a row for each set of texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    print(circumstances(rounds))
    print("\n| texts | first paint, ms | from a key to the answer, ms | highest, ms |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        options = []
        for name, text, count in (
            ("--policies", _POLICY, 200),
            ("--filename", _POD, 100),
            ("--nodes", _NODE, 200),
        ):
            file = Path(folder) / f"{name.strip('-')}.yaml"
            file.write_text("---\n".join(text.format(at=at, team=at % 20) for at in range(count)))
            options += [name, str(file)]
        for what, given in (
            ("the example of `fairlead demo`", []),
            ("200 policies, 100 pods, 200 nodes", options),
        ):
            paints, keys = measure(browser, given, rounds)
            paint, key = statistics.median(paints), statistics.median(keys)
            print(f"| {what} | {paint:.0f} | {key:.0f} | {max(keys):.0f} |")


if __name__ == "__main__":
    main()
