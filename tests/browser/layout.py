"""Faults of a page's layout: off screen, text on text, or scrolled sideways."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

# Of a telephone, a tablet, a small and a usual screen; the last one at 150 %, which is narrower.
WIDTHS = {"390": 390, "768": 768, "1024": 1024, "1440": 1440, "1440 at 150 %": 960}
HEIGHT = 900
# Elements in a part that scrolls by itself, or is cut off on purpose, may lie outside.
_FAULTS = """
() => {
  const faults = [];
  const name = (e) =>
    `${e.tagName.toLowerCase()}.${e.className} "${(e.textContent || '').trim().slice(0, 40)}"`;
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) faults.push(`it scrolls sideways: ${root.scrollWidth} px`);
  const shown = [...document.body.querySelectorAll('*')].filter((e) =>
    !e.closest('svg, .spoken') && e.checkVisibility({ visibilityProperty: true }));
  const within = (e) => {
    for (let above = e.parentElement; above !== document.body; above = above.parentElement) {
      if (!above) return null;
      if (getComputedStyle(above).overflowX !== 'visible') return above;
    }
    return null;
  };
  let bottom = 0;
  for (const e of shown) {
    const { left, right, width, height } = e.getBoundingClientRect();
    if (!width || !height) continue;
    if (!within(e)) {
      if (left < -1 || right > innerWidth + 1) faults.push(`off screen: ${name(e)}`);
      bottom = Math.max(bottom, e.getBoundingClientRect().bottom + scrollY);
    }
  }
  if (root.scrollHeight > Math.max(innerHeight, bottom + 120)) {
    faults.push(`it scrolls into nothing: ${root.scrollHeight} px, its end is at ${bottom} px`);
  }
  for (const pane of shown.filter((e) => /auto|scroll/.test(getComputedStyle(e).overflowY))) {
    const top = pane.getBoundingClientRect().top - pane.scrollTop;
    const ends = [...pane.querySelectorAll('*')].map((e) => e.getBoundingClientRect().bottom - top);
    if (pane.scrollHeight > Math.max(pane.clientHeight, Math.max(0, ...ends) + 60)) {
      faults.push(`a part scrolls into nothing: ${name(pane)}`);
    }
  }
  const words = shown.filter((e) => getComputedStyle(e).position === 'static' &&
    [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim()) && !within(e));
  const boxes = words.map((e) => [...e.getClientRects()].map((box) => [e, box])).flat();
  boxes.sort((a, b) => a[1].top - b[1].top);
  for (let at = 0; at < boxes.length; at++) {
    const end = boxes[at][1].bottom;
    for (let next = at + 1; next < boxes.length && boxes[next][1].top < end; next++) {
      const [[one, a], [two, b]] = [boxes[at], boxes[next]];
      if (one.contains(two) || two.contains(one)) continue;
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 2 && down > 4) faults.push(`overlap: ${name(one)} and ${name(two)}`);
    }
  }
  return faults;
}
"""


def faults_of_layout(tab: Page) -> Iterator[str]:
    """Yield each fault of the page at each width."""
    for title, width in WIDTHS.items():
        tab.set_viewport_size({"width": width, "height": HEIGHT})
        # The page has a frame to answer in.
        tab.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))")
        for fault in tab.evaluate(_FAULTS):
            yield f"{title}: {fault}"
