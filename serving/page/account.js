// What an answer says about itself: how well it rests on its sources, how it was found, which tokens it took, and what
// that cost. What nobody knows is said to be not known; it is never a zero.

import { make, number, percent } from "./elements.js";

const GROUNDING = { grounded: "Grounded in the sources", partial: "Partly cited", ungrounded: "Not cited" };

// The line under every answer.
export function factsOf(told, ms) {
  const { measured, total } = spent(told.usage);
  const facts = make("ul", "facts");
  const declined = told.status === "no_sources"; // a refusal to guess cites nothing, and that is no fault
  facts.append(
    declined ? make("li", "", "Not covered") : make("li", told.grounding, GROUNDING[told.grounding] || told.grounding),
    make("li", "", `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)} s`),
  );
  if (told.cost_usd !== null) facts.append(make("li", "cost", dollars(told.cost_usd)));
  else if (!measured || total) facts.append(make("li", "cost", "Cost not known"));
  if (told.rewrite.status === "used") facts.append(make("li", "", `Searched for “${told.rewrite.query}”`));
  return facts;
}

// The same in full, folded away.
export function accountOf(told) {
  const account = make("details", "account");
  const list = make("dl", "");
  const row = (name, ...values) => list.append(make("dt", "", name), ...values.map((value) => make("dd", "", value)));
  row("Steps", ...told.rounds.map(stepOf));
  if (told.stopped) row("Stopped", `${told.stopped[0].toUpperCase()}${told.stopped.slice(1)}.`);
  row("Tokens", ...tokensOf(told.usage));
  row("Cost", costOf(told));
  row("Index", told.index_version);
  if (told.notes.length) row("Notes", ...told.notes);
  account.append(make("summary", "", "How this was found, and what it took"), list);
  return account;
}

const DONE = { search: "Searched for", lookup: "Looked up what is named in", dated: "Searched the time named in" };

function stepOf(step) {
  const wordings = [step.query, ...step.variants].map((text) => `“${text}”`).join(" and ");
  const found = `${number(step.found)} passage${step.found === 1 ? "" : "s"}`;
  const next = step.next ? ` One step more: ${step.next}.` : "";
  return `${DONE[step.tool] || step.tool} ${wordings}: ${found}.${next}`;
}

// Every token is in exactly one class; those of rewriting are another model's, so they stand apart.
function tokensOf(usage) {
  const lines = [classes(usage, "for the answer")];
  if (spent(usage.rewriting).total || !usage.rewriting.measured) lines.push(classes(usage.rewriting, "for rewriting"));
  return lines;
}

function classes(usage, what) {
  if (!usage.measured) return `Not known ${what}: the model did not say.`;
  if (!spent(usage).total) return `None ${what}: no model was asked.`;
  const share = usage.cache_read_share === null || usage.cache_read_share === undefined ? "" : ` (${percent(usage.cache_read_share)} of the prompt)`;
  return [
    `${number(usage.input_tokens)} read`,
    usage.cache_read_tokens ? `${number(usage.cache_read_tokens)} from the cache${share}` : "",
    usage.cache_write_tokens ? `${number(usage.cache_write_tokens)} into the cache` : "",
    `${number(usage.output_tokens)} written ${what}.`,
  ].filter(Boolean).join(", ");
}

function costOf(told) {
  if (told.cost_usd !== null) return `${dollars(told.cost_usd)} for this answer, ${dollars(1000 * told.cost_usd)} for a thousand like it.`;
  const used = [spent(told.usage), spent(told.usage.rewriting)];
  if (used.some((one) => !one.measured)) return "Not known: a model did not say what it used.";
  return `Not known: no price is set${used.some((one) => one.total) ? " for every model that was asked" : ""}.`;
}

function spent(usage) {
  const { input_tokens: read, output_tokens: written, cache_read_tokens: cached, cache_write_tokens: stored } = usage;
  return { measured: usage.measured, total: read + written + cached + stored };
}

const dollars = (value) => `$${value.toLocaleString("en", { maximumSignificantDigits: 3 })}`;
