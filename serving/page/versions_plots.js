// The drawings of the page "Versions": who gets what, how the share of a canary went, and where a difference lies.
//
// Places are percentages, so a drawing takes whatever room there is without stretching dots or letters. Looks are
// classes in versions.css, because the content policy allows no style of their own.
import { clock, draw, make, percent, signed } from "./elements.js";

const pc = (share) => `${(share * 100).toFixed(3)}%`;
const line = (className, x1, y1, x2, y2) => draw("line", { class: className, x1, y1, x2, y2 });

function picture(className, height, label, ...inside) {
  return draw("svg", { class: className, width: "100%", height, role: "img", "aria-label": label }, ...inside);
}

export function shareBar(stable, canary, share) {
  const label = canary === null
    ? "All sessions get the stable version."
    : `${percent(share)} of the sessions get the canary, ${percent(1 - share)} the stable version.`;
  const canaryPart = canary === null ? [] : [draw("rect", { class: "fill-canary", x: pc(1 - share), y: 0, width: pc(share), height: 14 })];
  return picture("bar", 14, label, draw("rect", { class: stable === null ? "fill-none" : "fill-stable", x: 0, y: 0, width: "100%", height: 14 }), ...canaryPart);
}

// ------------------------------------------------------------------------------------------ differences

const SCALES = [0.05, 0.1, 0.2, 0.5, 1];

export function scaleOf(metrics) {
  // One scale for all rows, or lengths could not be compared; what only informs may reach beyond its ends.
  const deciding = metrics.filter((metric) => !metric.advisory && measured(metric));
  const reach = Math.max(0, ...deciding.flatMap((metric) => [-metric.low, metric.high, metric.max_drop * 1.25]));
  return SCALES.find((scale) => scale >= reach) || 1;
}

export function measured(metric) {
  return metric.canary.n > 0 && metric.stable.n > 0 && metric.canary.mean !== null && metric.stable.mean !== null;
}

export function interval(metric, scale) {
  const x = (value) => pc((Math.min(scale, Math.max(-scale, value)) / scale + 1) / 2);
  const drop = metric.max_drop;
  const parts = [
    draw("rect", { class: "too-far", x: 0, y: 0, width: x(-drop), height: 30 }),
    line("tolerated", x(-drop), 0, x(-drop), 30), line("zero", "50%", 0, "50%", 30),
  ];
  if (!measured(metric)) {
    return picture("interval", 30, "The difference is not measured.", ...parts, line("unmeasured", "0%", 15, "100%", 15));
  }
  parts.push(line("whisker", x(metric.low), 15, x(metric.high), 15));
  for (const [bound, way] of [[metric.low, -1], [metric.high, 1]]) {
    if (Math.abs(bound) <= scale) parts.push(line("whisker", x(bound), 9, x(bound), 21));
    else if (bound * way > 0) parts.push(arrow(way < 0 ? "1%" : "99%", way));
  }
  const seen = metric.canary.mean - metric.stable.mean;
  if (Math.abs(seen) <= scale) parts.push(draw("circle", { class: "seen", cx: x(seen), cy: 15, r: 4.5 }));
  const label = `The difference lies between ${signed(metric.low)} and ${signed(metric.high)}`;
  return picture(`interval ${metric.outcome.toLowerCase()}`, 30, `${label}; a drop of ${drop} is tolerated.`, ...parts);
}

function arrow(x, way) {
  return draw("svg", { x, y: 15, overflow: "visible" }, draw("path", { class: "whisker-end", d: `M${-way * 7} -5 L0 0 L${-way * 7} 5` }));
}

export function axis(scale) {
  const label = (x, text, anchor) => draw("text", { x, y: 12, "text-anchor": anchor }, text);
  const end = String(scale);
  const svg = picture("axis", 16, "", label("0%", `−${end}`, "start"), label("50%", "0", "middle"), label("100%", `+${end}`, "end"));
  svg.removeAttribute("role");
  svg.setAttribute("aria-hidden", "true");
  return svg;
}

// ------------------------------------------------------------------------------------------ share over time

const TOP = 20, BOTTOM = 132, HEIGHT = 140; // pixels; a share of 1 is at TOP, of 0 at BOTTOM
const GUTTER = 0.13; // of the width, for the numbers of the scale

export function latestCanary(ledger, now) {
  // The moves of the latest canary as steps: what share it had from when on. Null when there was none.
  const begun = ledger.findIndex((move) => move.verb === "canary");
  if (begun < 0) return null;
  const canary = ledger[begun].to.canary;
  const steps = ledger.slice(0, begun + 1).reverse().map((move) => ({ at: Date.parse(move.at), ...fate(move, canary) }));
  const over = steps.findIndex((step) => step.over);
  const shown = over < 0 ? steps : steps.slice(0, over + 1);
  const last = shown[shown.length - 1];
  const end = over < 0 ? Math.max(now, last.at) : last.at;
  return { canary, steps: shown, begin: shown[0].at, end, running: over < 0, last };
}

function fate(move, canary) {
  if (move.to.canary === canary) return { share: move.to.share, over: false, word: percent(move.to.share) };
  if (move.to.stable === canary) return { share: 1, over: true, word: "promoted" };
  return { share: 0, over: true, word: "rolled back" };
}

export function shareOverTime(told) {
  const { steps, begin, end, running, last } = told;
  const room = (running ? 1 : 0.84) - GUTTER; // the rest is for what came after
  const x = (moment) => GUTTER + ((moment - begin) / Math.max(1, end - begin)) * room;
  const y = (share) => BOTTOM - (BOTTOM - TOP) * share;
  const parts = [0, 0.5, 1].flatMap((share) => [
    line("grid", pc(GUTTER), y(share), "100%", y(share)),
    draw("text", { x: pc(GUTTER - 0.015), y: y(share) + 4, "text-anchor": "end", class: "tick-label" }, percent(share)),
  ]);
  let labelled = -1;
  steps.forEach((step, i) => {
    const from = x(step.at);
    const to = i + 1 < steps.length ? x(steps[i + 1].at) : 1;
    const kind = step.over && step.share === 1 ? "stable" : "canary";
    parts.push(draw("rect", { class: `area-${kind}`, x: pc(from), y: y(step.share), width: pc(to - from), height: BOTTOM - y(step.share) }));
    parts.push(line(`step-${kind}`, pc(from), y(step.share), pc(to), y(step.share)));
    if (i) parts.push(line(`step-${kind}`, pc(from), y(steps[i - 1].share), pc(from), y(step.share)));
    if (to - from > 0.07 && from - labelled > 0.1) {
      const where = step.over ? { x: "100%", "text-anchor": "end" } : { x: pc((from + to) / 2), "text-anchor": "middle" };
      parts.push(draw("text", { ...where, y: y(step.share) - 6, class: "step-label" }, step.word));
      labelled = from;
    }
  });
  const day = new Date(begin).toDateString() !== new Date(end).toDateString();
  const ends = make(
    "p", "ends",
    make("span", "", clock(new Date(begin), day)),
    make("span", "", running ? "now" : clock(new Date(end), day)),
  );
  const shares = steps.map((step) => step.word).join(", then ");
  const label = `Share of canary ${told.canary} over time: ${shares}${running ? ` until now` : ""}.`;
  return make("div", last.share === 0 ? "over-time back" : "over-time", picture("", HEIGHT, label, ...parts), ends);
}
