// Asks for an answer after each change, and keeps the texts in the address.
"use strict";

const names = ["policies", "manifests", "nodes"];
const pause = 25;
// Bytes that the texts of an address may have: more than a person writes, and few for a tab.
const mostBytes = 4 * 1024 * 1024;
// Bytes that are unpacked at a time. Each is a thousand at most then (RFC 1951), and a browser unpacks
// a whole piece before the first part of it can be read.
const piece = 1024;
const editors = {};
const answer = document.getElementById("answer");
const told = document.getElementById("told");
const tabs = [...document.querySelectorAll("[role=tab]")];
let first = "", shown = false;
let timer, later, asking = false, again = false;
let askingMore = false, waiting = null, checked = "";
let ready;
const mounted = new Promise((resolve) => { ready = resolve; });

async function packed(texts) {
  const stream = new Blob([JSON.stringify(texts)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const each of bytes) binary += String.fromCharCode(each);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// Raises RangeError as soon as it has unpacked more than mostBytes.
async function unpacked(text) {
  const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  let next = 0;
  const pieces = new ReadableStream({
    pull(controller) {
      if (next >= packed.length) return controller.close();
      controller.enqueue(packed.subarray(next, next + piece));
      next += piece;
    },
  });
  const reader = pieces.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder();
  let json = "", bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return JSON.parse(json + decoder.decode());
    bytes += value.length;
    if (bytes > mostBytes) {
      await reader.cancel();
      throw new RangeError();
    }
    json += decoder.decode(value, { stream: true });
  }
}

// The first question is asked before there are editors.
const textOf = (name) => editors[name]?.text ?? document.getElementById(name).value;
const texts = () => Object.fromEntries(names.map((name) => [name, textOf(name)]));

const html = new WeakMap();

// Most keys change nothing of most parts.
function put(place, text) {
  if (html.get(place) === text) return;
  html.set(place, text);
  morph(place, text);
}

function say(text) {
  const line = document.createElement("p");
  line.className = "sentence bad";
  line.textContent = text;
  answer.replaceChildren(line);
  html.delete(answer);
}

function tell(text) {
  told.textContent = text;
}

// Posts a question; null after it has said why there is no answer.
async function post(question) {
  const response = await fetch("/playground/answer", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(question),
  });
  if (!response.headers.get("content-type")?.startsWith("application/json")) {
    say(await response.text());
    return null;
  }
  const found = await response.json();
  if (found.error) say(found.error);
  return found.error ? null : found;
}

const opened = () => [...answer.querySelectorAll("details.group[open]")].map((each) => each.dataset.key);

// The address and the tab have the texts, of which nothing waits.
async function keep(asked) {
  const text = await packed(asked);
  if (JSON.stringify(asked) === first) sessionStorage.removeItem("texts");
  else sessionStorage.setItem("texts", text);
  history.replaceState(null, "", `#${text}`);
}

async function ask() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  answer.parentElement.setAttribute("aria-busy", "true");
  const asked = texts();
  try {
    const found = await post({ ...asked, opened: shown ? opened() : null });
    if (found) show(found);
    mounted.then(() => keep(asked));
  } catch (error) {
    say(`fairlead ui does not answer: ${error.message}`);
  }
  answer.parentElement.removeAttribute("aria-busy");
  asking = false;
  if (again) {
    again = false;
    ask();
  }
}

// What the whole list of findings depends on.
const checkable = ({ marks }) => JSON.stringify(
  [editors.policies.text, editors.nodes.text, marks.filter((each) => each.editor === "manifests")],
);

function showMarks(found) {
  put(document.getElementById("checks"), found.checks);
  put(document.getElementById("findings"), found.findings);
  for (const name of names) editors[name].mark(found.marks.filter((each) => each.editor === name));
}

function show(found) {
  shown = true;
  put(document.getElementById("verdict"), found.verdict);
  put(answer, found.html);
  clearTimeout(later);
  mounted.then(() => {
    if (found.whole || checked !== checkable(found)) showMarks(found);
    later = setTimeout(askMore, 400, found);
  });
}

// What takes longer, once nobody types; one request at a time, as a browser has few connections.
async function askMore(last) {
  if (askingMore) {
    waiting = last;
    return;
  }
  askingMore = true;
  const { whole, differs } = last;
  const isKnown = whole || checked === checkable(last);
  for (const part of [...(differs ? ["change"] : []), ...(isKnown ? [] : ["findings"])]) {
    const asked = JSON.stringify(texts());
    const found = await post({ ...texts(), part }).catch(() => null);
    if (!found || JSON.stringify(texts()) !== asked) continue;
    if (part === "change") {
      morph(document.getElementById("change"), found.html);
    } else {
      checked = checkable(found);
      showMarks(found);
    }
  }
  if (!differs) document.getElementById("change").replaceChildren();
  askingMore = false;
  const next = waiting;
  waiting = null;
  if (next) askMore(next);
}

// What is folded was not sent.
answer.addEventListener("toggle", (event) => {
  if (!event.target.matches("details.group[open]") || event.target.children.length > 1) return;
  event.target.dataset.kept = "";
  ask();
}, true);

function changed() {
  clearTimeout(timer);
  timer = setTimeout(ask, pause);
}

function select(name) {
  for (const tab of tabs) {
    const own = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(own));
    tab.tabIndex = own ? 0 : -1;
  }
  document.querySelector("main").dataset.shown = name;
  if (name === "answer") return;
  for (const each of names) document.getElementById(`panel-${each}`).hidden = each !== name;
}

for (const tab of tabs) {
  const name = tab.id.slice(4);
  tab.addEventListener("click", () => select(name));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const seen = tabs.filter((each) => each.offsetParent);
    const next = seen[(seen.indexOf(tab) + step + seen.length) % seen.length];
    select(next.id.slice(4));
    next.focus();
  });
}

document.getElementById("findings").addEventListener("click", (event) => {
  const link = event.target.closest("a[data-editor]");
  if (!link) return;
  event.preventDefault();
  select(link.dataset.editor);
  editors[link.dataset.editor].goTo(Number(link.dataset.line));
});

async function copyLink() {
  const address = `${location.origin}/playground#${await packed(texts())}`;
  await navigator.clipboard.writeText(address);
  tell("Copied. It has all texts; who opens it needs a page of their own.");
}

async function copyTest() {
  const found = await post({ ...texts(), part: "test" });
  if (!found) return;
  if (!found.test) {
    tell("There are no pods to test.");
    return;
  }
  await navigator.clipboard.writeText(found.test);
  tell("Copied. Save it as policies.test.yaml beside policies.yaml, and run fairlead test.");
}

function fill(event) {
  for (const name of names) event.target.elements[name].value = editors[name].text;
}

// A tab that comes back by a link has its texts, too.
const stored = () => location.hash.slice(1) || sessionStorage.getItem("texts");

async function restore() {
  try {
    const found = await unpacked(stored());
    for (const name of names) editors[name].text = String(found[name] ?? "");
  } catch (error) {
    tell(error instanceof RangeError
      ? `The texts of the address have over ${mostBytes / 1024 / 1024} MiB: they are not opened.`
      : "The address has no texts that can be read.");
  }
  ask();
}

async function begin() {
  const isNew = !stored();
  if (isNew) ask();
  const schema = await (await fetch("/schema.json")).json();
  for (const name of names) {
    editors[name] = window.fairleadEditor.mount(document.getElementById(name), {
      schema: name === "policies" ? schema : null,
      changed,
    });
  }
  first = JSON.stringify(texts());
  ready();
  if (!isNew) restore();
  document.getElementById("test").addEventListener("click", copyTest);
  document.getElementById("link").addEventListener("click", copyLink);
  document.getElementById("compare").addEventListener("submit", fill);
  document.getElementById("again").addEventListener("click", () => {
    sessionStorage.removeItem("texts");
    location.assign("/playground");
    if (location.hash) location.reload();
  });
  window.addEventListener("hashchange", () => stored() && restore());
}

begin();
