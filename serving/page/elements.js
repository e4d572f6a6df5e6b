// Elements made of text, and how this page spells outcomes, numbers and times.
//
// Whatever comes from the service arrives here as a string and becomes a text node or an attribute of a drawing.
// Nothing here makes HTML out of a string.

export const at = (id) => document.getElementById(id);

export function make(tag, className, ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside.filter((part) => part !== null && part !== undefined && part !== ""));
  return element;
}

export function draw(tag, attributes, ...inside) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
}

export function table(caption, heads, rows) {
  // The roles are said once more: where there is little room rows are blocks, and a block is no row to a reader.
  const roled = (element, role) => (element.setAttribute("role", role), element);
  const head = heads.map((name) => {
    const cell = roled(make("th", "", name), "columnheader");
    cell.scope = "col";
    return cell;
  });
  const body = rows.map(({ className, cells }) => {
    const row = roled(make("tr", className, ...cells), "row");
    cells.forEach((cell, i) => {
      roled(cell, cell.tagName === "TH" ? "rowheader" : "cell");
      if (typeof heads[i] === "string") cell.dataset.label = heads[i];
    });
    return row;
  });
  return roled(
    make(
      "table", "",
      make("caption", "unseen", caption),
      roled(make("thead", "", roled(make("tr", "", ...head), "row")), "rowgroup"),
      roled(make("tbody", "", ...body), "rowgroup"),
    ),
    "table",
  );
}

export function rowHead(...inside) {
  const cell = make("th", "", ...inside);
  cell.scope = "row";
  return cell;
}

export function id(version) {
  return version === null ? make("span", "none", "none") : make("code", "id", version);
}

// ------------------------------------------------------------------------------------------ words

// Passed, open, not measured, failed: four signs, four words, four looks. None of them is a number, and zero is one.
const DECIDED = { PASS: "passed", INCONCLUSIVE: "inconclusive", ERROR: "not measured", FAIL: "failed" };
const LIVE = { PASS: "as good", INCONCLUSIVE: "cannot tell yet", ERROR: "cannot be measured", FAIL: "worse" };
const SIGNS = { PASS: "✓", INCONCLUSIVE: "?", ERROR: "!", FAIL: "✕" };

export const decided = (outcome, advisory) => chip(outcome, DECIDED[outcome], advisory);
export const live = (outcome, advisory) => chip(outcome, LIVE[outcome], advisory);
export const absent = (word) => make("span", "none", word);

function chip(outcome, word, advisory) {
  const sign = make("span", "sign", SIGNS[outcome] || "·");
  sign.setAttribute("aria-hidden", "true");
  const kind = SIGNS[outcome] ? outcome.toLowerCase() : "unknown";
  const said = make("span", `chip ${kind}${advisory ? " advisory" : ""}`, sign, word || outcome);
  return advisory ? make("span", "advised", said, make("small", "", "advisory")) : said;
}

export const number = (value) => value.toLocaleString("en");
export const mean = (value) => value.toFixed(3);
export const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
export const percent = (share) => `${Number((share * 100).toFixed(1))}\u00a0%`;

export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

export function time(stamp, dayAlone = false) {
  const moment = new Date(stamp);
  if (Number.isNaN(moment.getTime())) return make("span", "none", stamp || "time not known");
  const element = make("time", "", dayAlone ? clock(moment).slice(0, 10) : clock(moment));
  element.dateTime = stamp;
  element.title = stamp;
  return element;
}

export function clock(moment, withDay = true) {
  const two = (part) => String(part).padStart(2, "0");
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} `;
  return `${withDay ? day : ""}${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;
}
