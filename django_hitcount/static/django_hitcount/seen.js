// Counts the views of pages that a cache serves to everybody: sends the tokens of the page to
// django_hitcount.urls, and fills in the numbers. "Cached pages" in the documentation explains it.
(function () {
  "use strict";
  var script = document.currentScript;
  var root = document.documentElement;
  if (window.hitcount) {
    window.hitcount.count(); // The page has the script twice, or Turbo has put in another page.
    return;
  }
  if (window.top !== window && !script.hasAttribute("data-frames")) return;

  var url = script.getAttribute("data-url");
  var isDue = false;
  var taken; // By attribute: the token that was sent, by element.
  var unanswered = [];

  function newId() {
    return Array.from(crypto.getRandomValues(new Uint32Array(4)), function (number) {
      return number.toString(36);
    }).join("-");
  }

  function forget() {
    taken = { "data-hit": new WeakMap(), "data-hits": new WeakMap(), "data-visitors": new WeakMap() };
  }

  function each(name, use) {
    document.querySelectorAll("[" + name + "]").forEach(function (element) {
      use(element, element.getAttribute(name));
    });
  }

  function take(name, tokens) {
    each(name, function (element, token) {
      if (taken[name].get(element) !== token) tokens.add(token);
      taken[name].set(element, token);
    });
    return tokens;
  }

  function fill(answer) {
    var numbers = answer.numbers;
    var format = new Intl.NumberFormat(root.lang || undefined);
    ["data-hits", "data-visitors"].forEach(function (name) {
      each(name, function (element, token) {
        if (numbers[token] != null) element.textContent = format.format(numbers[token]);
      });
    });
  }

  function send(body, isRetry) {
    if (!window.fetch) {
      navigator.sendBeacon(url, body);
      return;
    }
    fetch(url, { method: "POST", body: body, keepalive: true, cache: "no-store" })
      .then(function (response) {
        if (response.status >= 500) throw response;
        return response.ok ? response.json().then(fill) : null;
      })
      .catch(function () {
        // The server knows the id, so a second try counts nothing twice.
        unanswered.push(body);
        if (!isRetry && navigator.onLine) setTimeout(retry, 5000);
      });
  }

  function retry() {
    unanswered.splice(0).forEach(function (body) {
      send(body, true);
    });
  }

  // A request has at most 200 tokens and 32 KiB, of which the browser allows 64 KiB at a time.
  function sendAll(hit, show) {
    var chunk = { id: newId(), hit: [], show: [] };
    var room = 30000;
    function add(name, token) {
      if (room < token.length || chunk.hit.length + chunk.show.length >= 200) {
        send(JSON.stringify(chunk));
        chunk = { id: newId(), hit: [], show: [] };
        room = 30000;
      }
      chunk[name].push(token);
      room -= token.length + 3;
    }
    hit.forEach(add.bind(null, "hit"));
    show.forEach(add.bind(null, "show"));
    if (chunk.hit.length || chunk.show.length) send(JSON.stringify(chunk));
  }

  function count() {
    if (root.hasAttribute("data-turbo-preview")) return;
    isDue = document.prerendering || document.visibilityState === "hidden";
    if (isDue) return;
    var hit = take("data-hit", new Set());
    sendAll(hit, take("data-visitors", take("data-hits", new Set())));
  }

  function countIfDue() {
    if (isDue) count();
  }

  window.hitcount = { count: count };
  document.addEventListener("prerenderingchange", countIfDue);
  document.addEventListener("visibilitychange", countIfDue);
  addEventListener("online", retry);
  addEventListener("pageshow", function (event) {
    if (!event.persisted) return;
    forget(); // Back to a page that the browser kept: this is another view.
    count();
  });
  forget();
  count();
})();
