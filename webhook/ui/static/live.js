// Asks for what differs from what is shown, and puts it in place; a hidden window asks for nothing.
"use strict";

const live = document.getElementById("live");
const pause = 2000;
let lines = [], version = "", timer;

function lost(text) {
  const line = document.getElementById("lost") ?? document.createElement("p");
  line.id = "lost";
  line.className = "sentence late trouble";
  line.setAttribute("role", "status");
  line.textContent = text;
  live.before(line);
}

// parts: from, until, and the lines in their place; the last first.
function patched(old, parts) {
  const made = [...old];
  for (const [from, until, fresh] of parts) made.splice(from, until - from, ...fresh);
  return made;
}

async function look() {
  clearTimeout(timer);
  try {
    const response = await fetch(live.dataset.stream, { headers: version ? { "if-none-match": version } : {} });
    if (response.status === 200) {
      const found = await response.json();
      const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
      lines = patched(found.whole ? [] : lines, found.parts);
      version = response.headers.get("etag");
      morph(live, lines.join("\n"));
      if ("end" in live.dataset && atEnd) scrollTo(0, document.documentElement.scrollHeight);
    } else if (response.status !== 304) {
      throw new Error(await response.text());
    }
    document.getElementById("lost")?.remove();
  } catch {
    lost("fairlead ui does not answer: this may be old. If it ended or was started again, open the address that it printed last.");
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(look, pause);
}

document.addEventListener("visibilitychange", () => document.hidden ? clearTimeout(timer) : look());
if ("end" in live.dataset) scrollTo(0, document.documentElement.scrollHeight);
look();
