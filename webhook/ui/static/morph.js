// Makes what is shown equal to new HTML, and touches only what differs: a selection, the focus and what
// a person opened stay. Ages count here.
"use strict";

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || "" : "";
}

function alike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
}

function morphElement(old, fresh) {
  // What a person opened stays open.
  const kept = "kept" in old.dataset && old.open && !fresh.hasAttribute("open") ? ["open", "data-kept"] : [];
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if ("age" in fresh.dataset) return;
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const known = keyed.get(keyOf(wanted));
    if (known && known !== at && known.parentNode === old) {
      old.insertBefore(known, at);
      at = known;
    }
    if (at && alike(at, wanted)) {
      const next = at.nextSibling;
      if (at.nodeType === Node.ELEMENT_NODE) morphElement(at, wanted);
      else if (at.data !== wanted.data) at.data = wanted.data;
      at = next;
    } else {
      old.insertBefore(wanted, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function morph(place, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  morphChildren(place, fresh.content);
  countAges();
}

// As kubectl prints ages.
function ageText(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  const most = seconds < 120 ? 3 : seconds < 7200 ? 2 : seconds < 172800 ? 1 : 0;
  let text = "", rest = seconds;
  for (const [size, unit] of units.slice(most, most + (seconds < 28800 ? 2 : 1))) {
    const count = Math.floor(rest / size);
    if (count || !text) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}

function countAges() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    const text = ageText(Math.max(0, Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000)));
    if (time.textContent !== text) time.textContent = text;
  }
}

countAges();
setInterval(countAges, 1000);
