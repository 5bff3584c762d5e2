"""`python -m tests.bench.playground`: how soon the playground is there, and answers a key.

In Chromium, as `make test-browser` finds it, over the command as a process: the example of
`fairlead demo`, and 300 policies of 20 teams with 50 pods and 5,000 nodes. Keys write a comment at
the end of the manifests, and of the policies. Prints Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.document import circumstances
from tests.browser.conftest import find_browser
from tests.ui import served_pages

# The time from a key to the answer that is in the page, with the pause after the last key.
_KEY: Final = """
(name) => new Promise((resolve) => {
  const pane = document.querySelector(".answer");
  const { shadowRoot } = document.querySelector(`#${name} + .editor`);
  const editor = shadowRoot.querySelector(".cm-content");
  editor.addEventListener("beforeinput", () => {
    const began = performance.now();
    new MutationObserver((_, observer) => {
      if (pane.hasAttribute("aria-busy")) return;
      observer.disconnect();
      requestAnimationFrame(() => resolve(performance.now() - began));
    }).observe(pane, { attributeFilter: ["aria-busy"] });
  }, { once: true });
})
"""
# From the start of the page to its first answer, and the size of the last one.
_FIRST: Final = """
() => new Promise((resolve) => {
  const answer = document.getElementById("answer");
  const look = () => answer.querySelector(".group")
    ? resolve(performance.now()) : requestAnimationFrame(look);
  look();
})
"""
_ELEMENTS: Final = "document.querySelectorAll('*').length"
_BYTES: Final = """
performance.getEntriesByType("resource")
  .filter((each) => each.name.endsWith("/playground/answer")).at(-1).decodedBodySize
"""
# A comment at the end of the text, letter by letter.
_KEYS: Final = "# abcdefg"
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
_NODE: Final = """\
kind: Node
metadata: {{name: n{at}, labels: {{pool: p{pool}, zone: z{zone}}}}}
"""


class Measured(NamedTuple):
    """Times in milliseconds: of first paints, first answers, and keys by their editor."""

    paints: list[float]
    firsts: list[float]
    keys: dict[str, list[float]]
    elements: int
    kilobytes: float


def measure(browser: Browser, options: list[str], rounds: int) -> Measured:
    """Open the playground again and again, and press keys in two editors."""
    measured = Measured([], [], {"manifests": [], "policies": []}, 0, 0.0)
    with served_pages.page(*options) as served:
        for _ in range(rounds):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            tab = context.new_page()
            tab.goto(served.address)
            measured.firsts.append(float(tab.evaluate(_FIRST)))
            measured.paints.append(float(tab.evaluate(_PAINT)))
            for name, times in measured.keys.items():
                tab.locator(f"#tab-{name}").click()
                tab.locator(f"#{name} + .editor .cm-content").click()
                tab.keyboard.press("ControlOrMeta+End")
                times += [_key(tab, name, key) for key in _KEYS]
            elements, size = int(tab.evaluate(_ELEMENTS)), float(tab.evaluate(_BYTES))
            measured = measured._replace(elements=elements, kilobytes=size / 1000)
            context.close()
    return measured


def _key(tab: Page, editor: str, key: str) -> float:
    # What evaluates to a promise is awaited, and no key would ever come.
    tab.evaluate(f"void (window.answered = ({_KEY})('{editor}'))")
    tab.keyboard.type(key)
    return float(tab.evaluate("window.answered"))


def _p95(times: list[float]) -> float:
    return sorted(times)[int(0.95 * (len(times) - 1))]


def main() -> None:
    """Print a row for each set of texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    print(circumstances(rounds))
    print(
        "\n| texts | first paint, ms | first answer, ms | key in manifests: median, p95, ms "
        "| key in policies: median, p95, ms | answer, KB | elements |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        options = []
        for name, text, count in (
            ("--policies", _POLICY, 300),
            ("--filename", _POD, 50),
            ("--nodes", _NODE, 5_000),
        ):
            file = Path(folder) / f"{name.strip('-')}.yaml"
            made = (
                text.format(at=at, team=at % 20, pool=at % 25, zone=at % 3) for at in range(count)
            )
            file.write_text("---\n".join(made))
            options += [name, str(file)]
        for what, given in (
            ("the example of `fairlead demo`", []),
            ("300 policies, 50 pods, 5,000 nodes", options),
        ):
            times = measure(browser, given, rounds)
            cells = [f"{statistics.median(each):.0f}" for each in (times.paints, times.firsts)]
            cells += [
                f"{statistics.median(keys):.0f}, {_p95(keys):.0f}" for keys in times.keys.values()
            ]
            print(f"| {what} | {' | '.join(cells)} | {times.kilobytes:.0f} | {times.elements:,} |")


if __name__ == "__main__":
    main()
