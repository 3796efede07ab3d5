
"use strict";
// The page works without this script up to the table of verdicts. It reads one JSON block and draws what is opened.
// Text enters the page through text nodes only, never as markup. The address's # holds the state, to be shared:
// #filter=mm&verdict=SLOWER,FASTER&sort=-B vs A&open=mm,softmax&theme=dark
(() => {
  const SHAPES_DRAWN = 60, ROWS_SHOWN = 200, OPENED_AT_ONCE = 25;
  const SHAPE = {dtype: 0, shape: 1, verdict: 2, a: 3, b: 4, delta: 5, low: 6, high: 7, sign: 8, p: 9, margin: 10,
    counts: 11, why: 12, rounds: 13};
  const ops = new Map(JSON.parse(document.getElementById("data").textContent).map((op) => [op.op, op]));
  const table = document.getElementById("ops");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const headers = Array.from(table.tHead.rows[0].cells);
  const state = {filter: "", verdicts: new Set(), sort: "", open: new Set(), theme: ""};

  // --- elements ---------------------------------------------------------------------------------------------------
  function put(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    for (const child of children) if (child !== null && child !== "") node.append(child);
    return node;
  }
  const h = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) =>
    put(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const signed = (value, digits = 2) => {
    if (value === null || value === undefined) return "-";
    const text = Math.abs(value).toFixed(digits);
    return (value < 0 ? "\u2212" : "+") + text + " %";
  };
  const word = (value, verdict) => (verdict === "NO_CODE_CHANGE" ? "noise" : Math.abs(value) < 0.005 ? "as fast"
    : value < 0 ? "faster" : "slower");
  const plain = (value, digits = 4) => (value === null ? "-" : String(Number(value.toPrecision(digits))));

  function grid(titles, lines, widths = "") {
    // `widths`: one letter a column, n = never broken, w = wide, x = widest, anything else = as it comes.
    const rest = lines.slice(ROWS_SHOWN);
    const tbody = h("tbody", {}), kinds = {n: {class: "n"}, w: {class: "wide"}, x: {class: "widest"}};
    const add = (own) => tbody.append(...own.map((line) => h("tr", {},
      ...line.map((cell, place) => h("td", kinds[widths[place]], cell)))));
    add(lines.slice(0, ROWS_SHOWN));
    const found = h("div", {class: "scroll", tabindex: "0"},
      h("table", {}, h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", {scope: "col"}, title)))), tbody));
    if (!rest.length) return found;
    const more = h("button", {type: "button"}, `Show ${rest.length} more`);
    more.addEventListener("click", () => { add(rest); more.remove(); });
    return h("div", {}, found, more);
  }

  // --- forest plot ------------------------------------------------------------------------------------------------
  function ticks(low, high, about) {
    const raw = (high - low) / Math.max(about, 2), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i += 1) found.push(i * step);
    return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
  }

  function extent(lines) {
    // Wild rounds must not squeeze the rest: beyond thrice the 90th percentile is drawn as an arrow at the edge.
    const all = lines.flatMap((line) => [line.delta, line.low, line.high, ...line.rounds])
      .filter((value) => value !== null && value !== undefined);
    const sizes = all.map(Math.abs).sort((x, y) => x - y);
    const cap = Math.max(3 * sizes[Math.floor(0.9 * (sizes.length - 1))], 0.05);
    const margins = lines.map((line) => line.margin || 0);
    const low = Math.max(-cap, Math.min(...all, -Math.max(...margins)));
    const high = Math.min(cap, Math.max(...all, Math.max(...margins)));
    const room = (high - low) * 0.04;
    return [low - room, high + room];
  }

  function mark(x, y, verdict, strong) {
    const r = strong ? 6 : 4.5;
    const path = {
      FASTER: `M${x - r} ${y} L${x + r} ${y - r} L${x + r} ${y + r} Z`,
      SLOWER: `M${x + r} ${y} L${x - r} ${y - r} L${x - r} ${y + r} Z`,
      SAME: `M${x - r + 1} ${y - r + 1} H${x + r - 1} V${y + r - 1} H${x - r + 1} Z`,
    }[verdict];
    return path ? s("path", {d: path, class: "mark"}) : s("circle", {cx: x, cy: y, r: r - 0.5, class: "hollow"});
  }

  function forest(lines, width) {
    const row = 20, top = 34, right = 74, longest = Math.max(...lines.map((line) => line.name.length));
    const left = Math.round(Math.min(400, Math.max(110, width * 0.32), 24 + longest * 7));
    const height = top + lines.length * row + 26, [low, high] = extent(lines);
    const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
    const inside = (value) => Math.min(width - right, Math.max(left, x(value)));
    const [marks, digits] = ticks(low, high, (width - left - right) / 80);
    const out = s("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": "Forest plot: B vs A latency of each shape in per cent, with 95 % intervals; the table has the numbers"});
    for (const tick of marks) {
      out.append(s("line", {x1: x(tick), x2: x(tick), y1: top, y2: height - 22, class: "axis"}),
        s("text", {x: x(tick), y: height - 8, "text-anchor": "middle", class: "soft"},
          `${tick < -1e-12 ? "\u2212" : tick > 1e-12 ? "+" : ""}${Math.abs(tick).toFixed(digits)} %`));
    }
    lines.forEach((line, index) => {
      if (line.margin === null) return;
      const [from, to] = [inside(-line.margin), inside(line.margin)];
      out.append(s("rect", {x: from, width: Math.max(0, to - from), y: top + index * row, height: row, class: "band"}));
    });
    if (low < 0 && high > 0) out.append(s("line", {x1: x(0), x2: x(0), y1: top, y2: height - 22, class: "zero"}));
    const ends = [["\u2190 B faster", left, "start"], ["B slower \u2192", width - right, "end"]];
    for (const [text, at, anchor] of ends) out.append(s("text", {x: at, y: 14, "text-anchor": anchor, class: "soft"}, text));
    out.append(s("text", {x: width, y: 14, "text-anchor": "end", class: "soft"}, "B vs A"));
    const letters = Math.floor((left - 8) / 7);
    lines.forEach((line, index) => {
      const y = top + index * row + row / 2;
      const tail = Math.ceil(letters * 0.6); // configurations differ at their end
      const name = line.name.length <= letters ? line.name :
        `${line.name.slice(0, letters - tail - 1)}\u2026${line.name.slice(-tail)}`;
      const group = s("g", {class: `v-${line.verdict}`},
        s("title", {}, `${line.name}: ${line.verdict} ${signed(line.delta)} [${signed(line.low)}, ${signed(line.high)}]`),
        s("text", {x: left - 8, y: y + 4, "text-anchor": "end", class: line.strong ? "strong" : ""}, name));
      for (const value of line.rounds) {
        if (value !== null) group.append(s("circle", {cx: inside(value), cy: y, r: 2, class: "round"}));
      }
      if (line.low !== null) {
        group.append(s("line", {x1: inside(line.low), x2: inside(line.high), y1: y, y2: y, class: "ci"}));
        if (line.low < low) group.append(s("text", {x: left, y: y + 4, class: "value"}, "\u25C2"));
        if (line.high > high) group.append(s("text", {x: width - right - 7, y: y + 4, class: "value"}, "\u25B8"));
      }
      group.append(mark(inside(line.delta), y, line.verdict, line.strong),
        s("text", {x: width, y: y + 4, "text-anchor": "end", class: `value${line.strong ? " strong" : ""}`},
          signed(line.delta)));
      out.append(group);
    });
    return out;
  }

  function plot(op, verdict, width) {
    const several = new Set(op.shapes.map((shape) => shape[SHAPE.dtype])).size > 1;
    const lines = op.shapes.filter((shape) => shape[SHAPE.delta] !== null).map((shape) => ({
      name: `${several ? `${shape[SHAPE.dtype]} ` : ""}${shape[SHAPE.shape]}`, verdict: shape[SHAPE.verdict], delta: shape[SHAPE.delta],
      low: shape[SHAPE.low], high: shape[SHAPE.high], margin: shape[SHAPE.margin], rounds: shape[SHAPE.rounds]}));
    if (!lines.length) return null;
    lines.sort((one, other) => other.delta - one.delta);
    const total = op.total === null ? [] : [{name: "all shapes", verdict, delta: op.total[0], low: op.total[1],
      high: op.total[2], margin: op.total[3], rounds: op.rounds.map((each) => each[2]), strong: true}];
    const box = h("div", {}, h("h3", {}, "Shapes, slowest first"), h("p", {class: "legend"},
      "\u25C0 faster, \u25B6 slower, \u25A0 same, \u25CB no claim; line: 95 % interval; dots: rounds; shaded: margin."));
    let drawn = forest([...total, ...lines.slice(0, SHAPES_DRAWN)], width);
    box.append(drawn);
    if (lines.length > SHAPES_DRAWN) {
      const more = h("button", {type: "button"}, `Draw all ${lines.length} shapes`);
      more.addEventListener("click", () => {
        const whole = forest([...total, ...lines], width);
        drawn.replaceWith(whole);
        drawn = whole;
        more.remove();
      });
      box.append(more);
    }
    return box;
  }

  // --- telemetry --------------------------------------------------------------------------------------------------
  function panel(tracks, series, title, unit, width) {
    const values = tracks.flatMap((track) => track[series] || []).filter((value) => value !== null);
    if (!values.length) return h("p", {class: "legend"}, `${title}: absent`);
    const left = 52, right = 4, top = 18, tall = 62, height = top + tall + 16;
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const seconds = tracks.map((track) => Math.max(track[1], 1)), all = seconds.reduce((sum, each) => sum + each, 0);
    const y = (value) => top + tall - (high > low ? (value - low) / (high - low) : 0.5) * tall;
    const out = s("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${title}, ${low} to ${high} ${unit}, over the cells of the operator`});
    let at = left;
    tracks.forEach((track, index) => {
      const wide = (seconds[index] / all) * (width - left - right), points = track[series];
      if (index % 2) out.append(s("rect", {x: at, y: top - 4, width: wide, height: tall + 8, class: "stripe"}));
      if (wide > 34) out.append(s("text", {x: at + wide / 2, y: height - 2, "text-anchor": "middle", class: "soft"},
        track[0].replace("_", " ")));
      let path = "";
      (points || []).forEach((value, place) => {
        if (value === null) return;
        const px = at + ((place + 0.5) / points.length) * wide;
        path += `${path && points[place - 1] !== null ? "L" : "M"}${px.toFixed(1)} ${y(value).toFixed(1)}`;
      });
      if (path) out.append(s("path", {d: path, class: "plain"}, s("title", {}, `${track[0]} ${track[5]}`)));
      at += wide;
    });
    out.append(s("text", {x: left - 6, y: top + 6, "text-anchor": "end", class: "soft"}, plain(high)));
    if (high > low) out.append(s("text", {x: left - 6, y: top + tall + 3, "text-anchor": "end", class: "soft"}, plain(low)));
    out.append(s("text", {x: left, y: 9, class: "soft"}, `${title}, ${unit}`));
    return out;
  }

  function strip(op, width) {
    const box = h("div", {}, h("h3", {}, "Telemetry, cell by cell"));
    if (!op.tracks.length) return put(box, {}, [h("p", {class: "legend"}, op.untracked || "No cell has any.")]);
    box.append(panel(op.tracks, 2, "SM clock", "MHz", width), panel(op.tracks, 3, "Temperature", "\u00B0C", width),
      panel(op.tracks, 4, "Power", "W", width));
    const throttled = op.tracks.filter((track) => track[5]).map((track) => `${track[0]}: ${track[5]}`);
    if (throttled.length) box.append(h("p", {class: "legend"}, `Throttle reasons: ${throttled.join("; ")}`));
    return box;
  }

  // --- code -------------------------------------------------------------------------------------------------------
  function code(op) {
    const box = h("div", {}, h("h3", {}, "Generated code"));
    if (op.gate) box.append(h("p", {}, h("b", {}, op.gate[0]), op.gate[1] ? ` first in ${op.gate[1]}` : "",
      op.gate[2] ? `: ${op.gate[2]}` : ""));
    else box.append(h("p", {}, "The gate was not asked: whether the switch changes any code is not known."));
    if (!op.code) return box;
    const found = op.code;
    if (found.totals.length) box.append(grid(["count, all launched variants", "A", "B", "B \u2212 A"], found.totals.map(
      ([name, a, b]) => [name, String(a), String(b), b === a ? "equal" : (b > a ? "+" : "\u2212") + Math.abs(b - a)])));
    if (found.changed.length) {
      box.append(h("h3", {}, "Variants that changed"), grid(["kernel", "options", "first stage", "counts A \u2192 B", "signature"],
        found.changed.map(([kernel, options, stage, counts, signature]) => [kernel, options, stage,
          counts.map(([name, a, b]) => `${name} ${a} \u2192 ${b}`).join("; ") || "equal",
          h("details", {}, h("summary", {}, "show"), h("code", {}, signature))]), "nnnw-"));
      if (found.more) box.append(h("p", {class: "legend"}, `and ${found.more} more`));
    }
    if (found.diff) {
      const lines = found.diff.split("\n").map((line) => {
        const kind = line.startsWith("@@") ? "hunk" : line[0] === "+" ? "add" : line[0] === "-" ? "del" : "";
        return kind ? h("span", {class: kind}, line) : line + "\n";
      });
      const cut = found.cut ? `; ${found.cut} more lines are left out` : "";
      box.append(h("details", {open: ""}, h("summary", {}, `ttgir of variant ${found.of}, A \u2192 B, locations stripped${cut}`),
        h("pre", {class: "diff", tabindex: "0"}, ...lines)));
    } else if (found.changed.length) box.append(h("p", {class: "legend"}, "No ttgir of a changed variant is on disk."));
    return box;
  }

  // --- an opened operator -----------------------------------------------------------------------------------------
  function shapes(op) {
    if (!op.shapes.length) return null;
    const long = op.shapes.some((shape) => shape[SHAPE.shape].length > 48);
    const lines = op.shapes.map((shape) => [shape[SHAPE.dtype], shape[SHAPE.shape],
      h("span", {class: `verdict v-${shape[SHAPE.verdict]}`}, shape[SHAPE.verdict]),
      shape[SHAPE.delta] === null ? "-" : `${signed(shape[SHAPE.delta])} ${word(shape[SHAPE.delta], shape[SHAPE.verdict])}`,
      shape[SHAPE.low] === null ? "-" : `[${signed(shape[SHAPE.low])}, ${signed(shape[SHAPE.high])}]`.replaceAll(" %", ""),
      shape[SHAPE.sign], shape[SHAPE.p] === null ? "-" : shape[SHAPE.p].toPrecision(2), plain(shape[SHAPE.a]),
      plain(shape[SHAPE.b]), shape[SHAPE.margin] === null ? "-" : `${shape[SHAPE.margin].toFixed(2)} %`,
      shape[SHAPE.counts] || "-", shape[SHAPE.why] || "-"]);
    return h("details", op.shapes.length > 60 ? {} : {open: ""}, h("summary", {}, `Table of ${op.shapes.length} shapes`),
      grid(["dtype", "shape", "verdict", "B vs A", "95 % interval", "same sign", "p adjusted", "A ms", "B ms", "margin",
        "counts A \u2192 B", "why"], lines, `n${long ? "-" : "n"}nnnnnnnnw${op.shapes.some((shape) => shape[SHAPE.why]) ? "x" : "-"}`));
  }

  function detail(row) {
    const op = ops.get(row.dataset.op), width = Math.max(300, Math.min(1200, innerWidth - (innerWidth < 600 ? 60 : 130)));
    const inner = h("div", {class: "inner"});
    const added = row.dataset.added ? [row.dataset.added.split(": ")].map(([name, ...rest]) => [name, rest.join(": ")]) : [];
    inner.append(h("h3", {}, "Why"), h("ul", {class: "reasons"}, ...[...added, ...op.reasons].map(([name, text]) =>
      h("li", {}, h("b", {}, name), ` ${text}`))));
    if (op.paired) inner.append(h("p", {class: "legend"},
      `${op.quantity}; rows of A ${op.paired[0]}, of B ${op.paired[1]}, paired ${op.paired[2]}`));
    const parts = [plot(op, row.dataset.verdict, width), shapes(op), strip(op, width), code(op)];
    inner.append(...parts.filter((part) => part !== null));
    if (op.events.length) inner.append(h("h3", {}, "Events"), grid(["code", "cells", "the first one"], op.events));
    if (op.order.length) inner.append(h("h3", {}, "Order"), h("ul", {}, ...op.order.map((text) => h("li", {}, text))));
    inner.append(h("details", {}, h("summary", {}, `Its ${op.cells.length} cells`), grid(["cell", "outcome", "seconds",
      "attempt", "reason"], op.cells.map(([name, outcome, seconds, reason, attempt]) => [name, outcome,
      seconds === null ? "-" : String(seconds), attempt === null ? "-" : String(attempt), reason || "-"]))));
    return h("tr", {class: "detail"}, h("td", {colspan: headers.length}, inner));
  }

  function open(row, wanted) {
    const button = row.querySelector(".opener"), isOpen = button.getAttribute("aria-expanded") === "true";
    if (wanted === isOpen) return;
    button.setAttribute("aria-expanded", String(wanted));
    if (wanted) row.after(detail(row));
    else if (row.nextElementSibling && row.nextElementSibling.className === "detail") row.nextElementSibling.remove();
    state.open[wanted ? "add" : "delete"](row.dataset.op);
  }

  // --- the table --------------------------------------------------------------------------------------------------
  function show() {
    const wanted = state.filter.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(wanted) &&
        (!state.verdicts.size || state.verdicts.has(row.dataset.verdict));
      row.hidden = !fits;
      if (row.nextElementSibling && row.nextElementSibling.className === "detail") row.nextElementSibling.hidden = !fits;
      shown += fits;
    }
    document.getElementById("shown").textContent = `${shown} of ${rows.length} operators`;
    document.querySelectorAll(".chip").forEach((chip) =>
      chip.setAttribute("aria-pressed", String(state.verdicts.has(chip.dataset.verdict))));
  }

  function sort() {
    const descending = state.sort.startsWith("-"), title = state.sort.replace(/^-/, "");
    const place = headers.findIndex((header) => header.textContent === title);
    headers.forEach((header, index) => header.setAttribute("aria-sort",
      index !== place ? "none" : descending ? "descending" : "ascending"));
    const numeric = place >= 0 && "numeric" in headers[place].dataset;
    const key = (row) => (numeric ? Number(row.cells[place].dataset.n ?? NaN) : row.cells[place].textContent);
    const compare = (one, other) => {
      const [x, y] = [key(one), key(other)];
      if (numeric && (isNaN(x) || isNaN(y))) return isNaN(x) - isNaN(y); // no number: last, whichever way
      return (numeric ? x - y : x.localeCompare(y)) * (descending ? -1 : 1);
    };
    const ordered = place < 0 ? rows : [...rows].sort(compare);
    body.append(...ordered.flatMap((row) => {
      const next = row.nextElementSibling;
      return next && next.className === "detail" ? [row, next] : [row];
    }));
  }

  function theme() {
    if (state.theme) document.documentElement.dataset.theme = state.theme;
    else delete document.documentElement.dataset.theme;
    document.getElementById("theme").textContent = `Theme: ${state.theme || "system"}`;
  }

  // --- the address ------------------------------------------------------------------------------------------------
  function remember() {
    const parts = {filter: state.filter, verdict: [...state.verdicts].join(","), sort: state.sort,
      open: [...state.open].slice(0, OPENED_AT_ONCE).join(","), theme: state.theme};
    const found = Object.entries(parts).filter(([, text]) => text)
      .map(([name, text]) => `${name}=${encodeURIComponent(text).replaceAll("%2C", ",")}`);
    history.replaceState(null, "", found.length ? `#${found.join("&")}` : location.pathname);
  }

  function recall() {
    const found = new URLSearchParams(location.hash.slice(1)), list = (name) => (found.get(name) || "").split(",").filter(Boolean);
    state.filter = found.get("filter") || "";
    state.sort = found.get("sort") || "";
    state.theme = ["light", "dark"].includes(found.get("theme")) ? found.get("theme") : "";
    state.verdicts = new Set(list("verdict"));
    const wanted = new Set(list("open"));
    document.getElementById("filter").value = state.filter;
    theme();
    sort();
    for (const row of rows) open(row, wanted.has(row.dataset.op));
    show();
  }

  function act() { show(); remember(); }
  document.getElementById("filter").addEventListener("input", (event) => { state.filter = event.target.value; act(); });
  document.querySelectorAll(".chip").forEach((chip) => chip.addEventListener("click", () => {
    state.verdicts[state.verdicts.has(chip.dataset.verdict) ? "delete" : "add"](chip.dataset.verdict);
    act();
  }));
  headers.forEach((header) => header.querySelector("button").addEventListener("click", () => {
    const title = header.textContent;
    state.sort = state.sort === title ? `-${title}` : state.sort === `-${title}` ? "" : title;
    sort();
    remember();
  }));
  body.addEventListener("click", (event) => {
    const button = event.target.closest(".opener");
    if (!button) return;
    open(button.closest("tr"), button.getAttribute("aria-expanded") !== "true");
    remember();
  });
  document.getElementById("open-all").addEventListener("click", () => {
    rows.filter((row) => !row.hidden).slice(0, OPENED_AT_ONCE).forEach((row) => open(row, true));
    remember();
  });
  document.getElementById("close-all").addEventListener("click", () => { rows.forEach((row) => open(row, false)); remember(); });
  document.getElementById("theme").addEventListener("click", () => {
    state.theme = {"": "dark", dark: "light", light: ""}[state.theme];
    theme();
    remember();
  });
  addEventListener("hashchange", () => { if (/^#(filter|verdict|sort|open|theme)=/.test(location.hash)) recall(); });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  document.documentElement.classList.add("scripted");
  recall();
})();
