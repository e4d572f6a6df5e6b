// The state of a rollout as elements: one function per part of the page "Versions", each from `GET /v1/rollout`.
//
// They only make elements. When they are called is versions.js; what the buttons do is versions_moves.js.
import { absent, decided, id, live, make, mean, number, percent, rowHead, signed, span, table, time } from "./elements.js";
import { axis, interval, latestCanary, measured, scaleOf, shareBar, shareOverTime } from "./versions_plots.js";

const EARLIER = 6; // moves shown at once; older ones are a click away

// ------------------------------------------------------------------------------------------ pointer

export function pointer({ stable, canary, share, previous, auto, revision }) {
  const sessions = (part) => make("span", "soft", `${percent(part)} of the sessions`);
  const place = (kind, name, ...inside) => make("div", `place ${kind}`, make("dt", "", name), make("dd", "", ...inside));
  const places = make("dl", "places");
  places.append(
    place("stable", "Stable", stable === null ? absent("nothing yet: nobody is served") : id(stable), stable && sessions(1 - share)),
    place("canary", "Canary", canary === null ? absent("none") : id(canary), canary && sessions(share)),
    place("previous", "Before", previous === null ? absent("none") : id(previous), previous && make("span", "soft", "where a rollback goes")),
  );
  const facts = make("ul", "facts");
  if (canary !== null) facts.append(make("li", "", auto ? "Widens and is promoted by itself, on evidence" : "Goes forward by hand alone"));
  if (canary !== null) facts.append(make("li", "", "Turns back by itself"));
  facts.append(make("li", "", `Revision ${revision}`));
  return [places, shareBar(stable, canary, share), facts];
}

export function shareOf(state, now) {
  if (state.ledger_error) return [absent("The moves cannot be read.")];
  const told = latestCanary(state.ledger, now);
  if (!told) return [absent("No canary so far.")];
  const ended = { 0: "It was rolled back.", 1: "It was promoted: everybody gets it." }[told.last.share];
  return [
    make("p", "about", id(told.canary), make("span", "soft", told.running ? `${percent(told.last.share)} of the sessions now` : ended)),
    shareOverTime(told),
  ];
}

// ------------------------------------------------------------------------------------------ evidence

const ABOUT = {
  success: "answered without a fault of ours",
  within_slo: "answered within the time promised",
  citations_resolved: "every marker leads to a source",
  found: "found anything",
  coverage: "words of the question in what was found",
  answered: "answered rather than declined",
  grounded: "rests on cited sources",
  overlap: "found the same documents",
  feedback: "readers say it helped",
};
const STEPS = { wait: "Wait", widen: "Widen", promote: "Promote", roll_back: "Roll back" };

export function evidence(state) {
  const known = state.evidence;
  if (state.evidence_error) return [trouble("The evidence cannot be read.", state.evidence_error)];
  if (state.canary === null) return [absent("There is no canary, so there is nothing to compare.")];
  if (!known) return [absent("Nothing is known live about this canary: this service does not weigh what it observes.")];
  const { step, share, reason } = known.advice;
  const advice = make("p", `advice ${step}`, make("strong", "", step === "widen" ? `Widen to ${percent(share)}` : STEPS[step] || step), make("span", "", reason));
  const counts = make("ul", "facts");
  counts.append(
    make("li", "", live(known.outcome)),
    make("li", "", make("strong", "", number(known.requests.canary)), " requests on ", id(known.canary)),
    make("li", "", make("strong", "", number(known.requests.stable)), " on ", id(known.stable)),
    make("li", "", "since ", time(known.since)),
  );
  const { one_in: oneIn, lost } = known.kept;
  if (oneIn > 1) counts.append(make("li", "", `counted as kept: by now one request in ${number(oneIn)}`));
  if (lost > 0) counts.append(make("li", "partial", `${number(lost)} observations lost: the server's log says why`));
  if (!known.metrics.length) return [advice, counts, absent("No metric is measured yet.")];
  const scale = scaleOf(known.metrics);
  const heads = ["Metric", "Canary", "Stable", make("span", "", "Canary less stable", axis(scale)), "Verdict"];
  const rows = known.metrics.map((metric) => metricRow(metric, scale));
  const key = make("p", "hint", "The line holds the difference however often one looks, the dot is that of the two means. Tinted: worse by more than is tolerated. Means are 0 to 1, higher is better.");
  return [advice, counts, make("div", "stacked evidence", table("Live metrics of the canary against stable", heads, rows)), key];
}

function metricRow(metric, scale) {
  const how = metric.paired ? "same question on both" : "separate requests";
  const name = rowHead(make("code", "", metric.metric), make("small", "", [ABOUT[metric.metric], how].filter(Boolean).join(" · ")));
  const judged = metric.max_drop !== null;
  const difference = make("td", "difference", judged ? interval(metric, scale) : null, make("small", "", metric.reason));
  const verdict = make("td", "verdict", verdictOn(metric, judged));
  return { className: metric.advisory ? "advisory" : "", cells: [name, arm(metric.canary), arm(metric.stable), difference, verdict] };
}

function verdictOn(metric, judged) {
  // Nothing to compare is not "cannot tell yet": more of the same requests might never change it.
  if (metric.outcome === "INCONCLUSIVE" && !measured(metric)) return make("span", "chip unmeasured", "not measured");
  return judged ? live(metric.outcome, metric.advisory) : make("span", "chip unmeasured", "not judged");
}

function arm({ mean: value, n }) {
  const seen = value === null ? absent("none yet") : make("span", "mean", mean(value));
  return make("td", "arm", seen, make("small", "", `over ${number(n)}`));
}

// ------------------------------------------------------------------------------------------ versions

export function versions(state, act) {
  if (state.versions_error) return [trouble("The versions cannot be read.", state.versions_error)];
  if (!state.versions.length) return [absent("No version is built yet.")];
  const heads = ["Version", "State", "Documents", "Passages", "Cut by", "Encoder", "Built", "Latest decision", make("span", "unseen", "Moves")];
  const rows = [...state.versions].reverse().map((version) => ({
    className: version.state,
    cells: [
      rowHead(id(version.id)),
      make("td", "standing", make("span", `state ${version.state}`, version.state)),
      make("td", "count", version.documents === null ? "" : number(version.documents)),
      make("td", "count", version.chunks === null ? "" : number(version.chunks)),
      make("td", "", version.chunker),
      make("td", "", version.embedder),
      make("td", "", time(version.built_at, true)),
      make("td", "", ...latest(version, state)),
      make("td", "acts", ...act(version)),
    ],
  }));
  return [make("div", "stacked versions", table("Index versions, newest first", heads, rows))];
}

function latest(version, state) {
  const about = state.decisions.find((decision) => decision.version === version.id);
  if (about) return [decided(about.outcome), about.forced ? make("span", "forced", "forced") : null];
  if (state.decisions_error) return [absent("cannot be read")];
  const known = version.state === "built" && state.decisions.length < 20;
  return [absent(known ? "not evaluated" : "none of late")];
}

// ------------------------------------------------------------------------------------------ decisions

export function decisions(state) {
  const parts = state.decisions.map((decision) => {
    const summary = make(
      "summary", "", id(decision.version), decided(decision.outcome),
      decision.forced ? make("span", "forced", "forced") : null, make("span", "when", time(decision.decided_at)),
    );
    const whole = make("details", "decision", summary, ...verdictsOf(decision));
    whole.dataset.key = `${decision.version} ${decision.decided_at}`;
    return whole;
  });
  if (state.decisions_error) parts.unshift(trouble("Not all decisions can be read.", state.decisions_error));
  if (state.versions_error) parts.unshift(absent("The decisions cannot be read while the versions cannot."));
  return parts.length ? parts : [absent("Nothing was decided yet.")];
}

function verdictsOf(decision) {
  const rows = decision.verdicts.map(({ gate, outcome, reason, advisory }) => ({
    className: advisory ? "advisory" : "",
    cells: [rowHead(gate), make("td", "", decided(outcome, advisory)), make("td", "reason", reason)],
  }));
  const verdicts = rows.length
    ? make("div", "verdicts", table(`Verdicts on ${decision.version}`, ["Gate", "Verdict", "In numbers"], rows))
    : absent("No gate was measured.");
  const forced = decision.forced ? make("p", "override", make("strong", "", "Forced against the gates: "), decision.forced) : null;
  const facts = make("dl", "binding");
  const { baseline, ...bound } = decision.binding;
  const told = { run: decision.run_id || null, "compared with": baseline, questions: bound.dataset, settings: bound.settings, gates: bound.gates, code: bound.code };
  for (const [name, value] of Object.entries(told)) {
    facts.append(make("div", "", make("dt", "", name), make("dd", "", value === null ? absent("none") : make("code", "", value))));
  }
  return [forced, verdicts, facts].filter(Boolean);
}

// ------------------------------------------------------------------------------------------ ledger

const VERBS = { canary: "Canary began", widen: "Widened", promote: "Promoted", rollback: "Rolled back" };

export function ledger(state) {
  if (state.ledger_error) return [trouble("The moves cannot be read.", state.ledger_error)];
  if (!state.ledger.length) return [absent("The pointer was never moved.")];
  const items = state.ledger.map(moveItem);
  const list = (some) => {
    const whole = make("ol", "timeline", ...some);
    whole.setAttribute("role", "list");
    return whole;
  };
  if (items.length <= EARLIER + 1) return [list(items)];
  const earlier = make("details", "group", make("summary", "", `${items.length - EARLIER} earlier moves`), list(items.slice(EARLIER)));
  earlier.dataset.key = "earlier";
  return [list(items.slice(0, EARLIER)), earlier];
}

function moveItem(move) {
  const forced = move.decision && move.decision.forced;
  return make(
    "li", move.verb,
    make("p", "what", make("strong", "", VERBS[move.verb] || move.verb), forced ? make("span", "forced", "forced") : null, make("span", "when", time(move.at))),
    make("p", "places-moved", ...fromTo(move)),
    move.reason ? make("p", "why", move.reason) : null,
    forced ? make("p", "why", make("strong", "", "Forced: "), forced) : null,
    make("p", "who", move.who, move.took_ms === null ? null : make("span", "", ` · done ${span(move.took_ms)} after it could be known`)),
  );
}

function fromTo({ from, to }) {
  const arrow = make("span", "to", "→");
  arrow.setAttribute("role", "img");
  arrow.setAttribute("aria-label", "to");
  // A canary that only widened is told in one place: the rest stayed.
  if (to.canary !== null && to.canary === from.canary && to.stable === from.stable) return [id(to.canary), " ", percent(from.share), arrow, percent(to.share)];
  return [place(from), arrow, place(to)];
}

function place({ stable, canary, share }) {
  const kept = id(stable);
  return canary === null ? make("span", "", kept) : make("span", "", kept, " + ", id(canary), ` at ${percent(share)}`);
}

function trouble(...sentences) {
  return make("div", "trouble", ...sentences.map((sentence) => make("p", "", sentence)));
}
