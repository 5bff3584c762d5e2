// Puts what the server sends in place of what is shown, and keeps the focus where it was.
"use strict";

const live = document.getElementById("live");
let source;

function show(html) {
  const items = [...live.querySelectorAll("[tabindex], a, button")];
  const at = items.indexOf(document.activeElement);
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
  live.innerHTML = html;
  if ("end" in live.dataset && atEnd) scrollTo(0, document.documentElement.scrollHeight);
  if (at >= 0) [...live.querySelectorAll("[tabindex], a, button")][at]?.focus({ preventScroll: true });
}

function lost() {
  if (document.getElementById("lost")) return;
  const line = document.createElement("p");
  line.id = "lost";
  line.className = "trouble";
  line.setAttribute("role", "status");
  line.textContent = "fairlead ui does not answer: this may be old. If it ended or was started again, open the address that it printed last.";
  live.before(line);
}

function follow() {
  source = new EventSource(live.dataset.stream);
  source.onmessage = (event) => {
    document.getElementById("lost")?.remove();
    show(JSON.parse(event.data));
  };
  source.onerror = () => {
    lost();
    // A browser gives up after some answers, such as that of another session.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
}

// A hidden tab asks for nothing.
document.addEventListener("visibilitychange", () => {
  source.close();
  if (!document.hidden) follow();
});
if ("end" in live.dataset) scrollTo(0, document.documentElement.scrollHeight);
window.addEventListener("pagehide", () => source.close());
follow();
