"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data-block").textContent);
  const SVG = document.querySelector("svg").namespaceURI;
  const VERDICTS = ["better", "worse", "cannot tell"];
  const KINDS = ["up", "down", "open"];
  const MARKS = ["▲", "▼", "○"];

  // Texts go in as text, never as markup.
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function shape(name, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  // --- sortable tables -----------------------------------------------------------------------------------------

  function valueOf(cell) {
    const text = (cell.firstChild?.firstChild?.nodeValue ?? cell.textContent).trim() || cell.textContent.trim();
    const found = text.replace(/[,\s]/g, "").replace("−", "-").match(/^[\[<>+▲▼○]*(-?[\d.]+(?:e[+-]?\d+)?)/i);
    return found ? Number(found[1]) : null;
  }

  function sort(table, column, direction) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, n) => {
      const cell = row.cells[column];
      return { row, n, text: cell.textContent.trim(), number: valueOf(cell) };
    });
    const numeric = rows.every((r) => r.number !== null || /^[–-]?$/.test(r.text));
    rows.sort((a, b) => {
      if (numeric && (a.number === null || b.number === null)) {
        return (a.number === null) - (b.number === null) || a.n - b.n; // unknown comes last, either way
      }
      const order = numeric ? a.number - b.number : a.text.localeCompare(b.text);
      return direction * order || a.n - b.n;
    });
    body.append(...rows.map((r) => r.row));
  }

  for (const table of document.querySelectorAll(".sortable table")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "descending" : "ascending");
        sort(table, column, up ? -1 : 1);
      });
    });
  }

  // --- what drives a pair --------------------------------------------------------------------------------------

  const panel = document.getElementById("pair");
  const cells = [...document.querySelectorAll(".matrix button")];

  function bars(title, drivers, text, word) {
    if (!drivers.length) return "";
    const most = Math.max(...drivers.map((d) => Math.abs(d[1])));
    const list = make("ul");
    for (const [label, effect, flips] of drivers) {
      const width = (48 * Math.abs(effect)) / most;
      const bar = shape("svg", { class: "driver", height: "14", "aria-hidden": "true" },
        shape("line", { x1: "50%", x2: "50%", y1: "0", y2: "14", class: "zero" }),
        shape("rect", { x: `${effect < 0 ? 50 - width : 50}%`, width: `${width}%`, y: "2", height: "10",
          class: effect < 0 ? "bar down" : "bar up" }));
      const says = `${effect > 0 ? "+" : "−"}${Math.abs(effect).toPrecision(2)}`;
      list.append(make("li", {}, make("span", { class: "what" }, make("bdi", {}, text(label))), bar,
        make("span", { class: "effect" }, says + (flips ? ` without this ${word} the sign turns` : ""))));
    }
    return make("div", {}, make("h4", {}, title), list);
  }

  // A pair as it was computed, or seen from the other side.
  function seen(index, turn) {
    const pair = Object.fromEntries(data.fields.map((field, n) => [field, data.pairs[index][n]]));
    if (!turn) return pair;
    const other = (drivers) => drivers.map(([label, effect, flips]) => [label, -effect, flips]);
    return {
      ...pair, a: pair.b, b: pair.a, difference: -pair.difference, texts: pair.turned, shares: pair.shares?.toReversed(),
      interval: pair.interval?.map((end) => -end).toReversed(), rows: other(pair.rows), states: other(pair.states),
      verdict: pair.verdict < 2 ? 1 - pair.verdict : pair.verdict,
    };
  }

  function interval(pair) {
    const [low, high] = pair.interval ?? [pair.difference, pair.difference];
    const reach = 1.15 * (Math.max(Math.abs(low), Math.abs(high), Math.abs(pair.difference)) || 1);
    const at = (value) => `${50 + (50 * value) / reach}%`;
    const kind = KINDS[pair.verdict];
    return shape("svg", { class: "strip", height: "30", "aria-hidden": "true" },
      shape("line", { x1: "50%", x2: "50%", y1: 0, y2: 30, class: "zero" }),
      shape("line", { x1: at(low), x2: at(high), y1: 15, y2: 15, class: `range ${kind}` }),
      shape("circle", { cx: at(pair.difference), cy: 15, r: 5.5, class: `dot ${kind}` }));
  }

  function sentences(pair, a) {
    const [difference, range, chance] = pair.texts;
    const lines = [`Difference ${difference} in reward, ` +
      `${pair.interval ? `${data.interval} ${range}` : "no interval"}; ${a} is better with probability ${chance}. ` +
      `Judged by ${pair.path}.`];
    for (const reason of pair.reasons) lines.push(`${data.reasons[reason]}.`);
    if (pair.flip !== null) {
      lines.push(`Without the ${pair.flip === 1 ? "row that speaks" : `${pair.flip} rows that speak`} loudest for it, ` +
        "the sign would turn.");
    }
    if (pair.detects !== null) {
      const more = pair.more === null || pair.verdict < 2 ? "" : pair.more > 0
        ? ` About ${pair.more.toLocaleString("en")} more rows are needed for a difference of ${data.matters}.`
        : ` A difference of ${data.matters} would have been seen.`;
      lines.push(`8 times in 10 this log decides a pair that is truly ${pair.detects} apart.${more}`);
    }
    if (pair.shares) lines.push(`${a} is ahead in ${pair.shares[0]} of the states, behind in ${pair.shares[1]}.`);
    return lines;
  }

  function show(index, turn) {
    const pair = seen(index, turn);
    const [a, b] = [data.names[pair.a], data.names[pair.b]];
    const title = make("h3", {}, make("bdi", {}, a), " against ", make("bdi", {}, b), " ",
      make("span", { class: `verdict ${KINDS[pair.verdict]}` }, `${MARKS[pair.verdict]} ${VERDICTS[pair.verdict]}`));
    panel.replaceChildren(title, interval(pair),
      make("div", {}, ...sentences(pair, a).map((line) => make("p", {}, line))),
      make("div", { class: "drivers" },
        bars("Rows that matter most", pair.rows, (row) => `row ${row}`, "row"),
        bars(`States that matter most (${data.columns})`, pair.states, (state) => data.states[state], "state")),
      pair.rows.length + pair.states.length === 0 ? "" : make("p", { class: "note" },
        "To the right: without it the difference would be smaller by so much; to the left: larger."));
    for (const cell of cells) {
      const chosen = Number(cell.dataset.pair) === index && cell.hasAttribute("data-turn") === turn;
      cell.setAttribute("aria-pressed", chosen);
      if (chosen) stopAt(cell);
    }
  }

  // The matrix is one stop of the Tab key; arrows move inside.
  function stopAt(cell) {
    for (const other of cells) other.tabIndex = -1;
    cell.tabIndex = 0;
  }

  function move(cell, event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const body = cell.closest("tbody");
    let row = cell.closest("tr").sectionRowIndex;
    let column = cell.closest("td").cellIndex;
    for (;;) {
      row += step[0];
      column += step[1];
      const next = column > 0 ? body.rows[row]?.cells[column] : undefined;
      if (!next) return;
      const button = next.querySelector("button");
      if (button) {
        stopAt(button);
        button.focus();
        return;
      }
    }
  }

  for (const cell of cells) {
    cell.addEventListener("click", () => show(Number(cell.dataset.pair), cell.hasAttribute("data-turn")));
    cell.addEventListener("keydown", (event) => move(cell, event));
  }
  const first = cells.find((cell) => cell.tabIndex === 0);
  if (first) show(Number(first.dataset.pair), first.hasAttribute("data-turn"));

  // --- values on hover and focus -------------------------------------------------------------------------------

  const tip = document.getElementById("tip");

  function place(target, x, y) {
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const width = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(4, Math.min(x + 12, width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > window.innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
  }

  document.addEventListener("pointermove", (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (target) place(target, event.clientX, event.clientY);
    else tip.hidden = true;
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  document.addEventListener("focusin", (event) => {
    const target = event.target.closest?.("[data-tip]");
    if (!target || !target.matches(":focus-visible")) { tip.hidden = true; return; }
    const box = target.getBoundingClientRect();
    place(target, box.right, box.bottom - 12);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
  document.addEventListener("scroll", () => { tip.hidden = true; }, true);

  // --- frames that scroll can be reached by keyboard; on paper everything is open -------------------------------

  function reach() {
    for (const frame of document.querySelectorAll(".scroll")) {
      if (frame.scrollWidth > frame.clientWidth) {
        frame.tabIndex = 0;
        frame.setAttribute("role", "region");
        frame.setAttribute("aria-label", frame.querySelector("caption")?.textContent ?? "Table");
      } else {
        frame.removeAttribute("tabindex");
        frame.removeAttribute("role");
        frame.removeAttribute("aria-label");
      }
    }
  }
  reach();
  window.addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });
})();
