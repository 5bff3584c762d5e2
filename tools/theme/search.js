// The index is fetched when somebody begins to search, not with each page.
(() => {
  const send = XMLHttpRequest.prototype.send, open = XMLHttpRequest.prototype.open;
  const waiting = [];
  let begun = new URLSearchParams(location.search).has("h");
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.later = new URL(url, location).pathname.endsWith("/search.json");
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (body) {
    if (this.later && !begun) waiting.push(() => send.call(this, body));
    else send.call(this, body);
  };
  const begin = () => {
    begun = true;
    waiting.splice(0).forEach((each) => each());
  };
  for (const sign of ["pointerover", "focusin", "pointerdown", "click"])
    addEventListener(sign, (event) => {
      if (event.target.closest?.(".md-search, [for=__search], #__search")) begin();
    }, true);
  addEventListener("keydown", (event) => {
    if (begun || event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    document.querySelector(".md-search__button").click();
  }, true);
})();
