// The page "Versions": looks at `GET /v1/rollout` every two seconds while it can be seen, and says how old that is.
//
// A part is made anew only when what it shows has changed, so nothing that is open, focused or being read goes away.
// Parts are versions_view.js, drawings versions_plots.js, and the moves with their dialog versions_moves.js.
import { at, clock, make, span } from "./elements.js";
import * as moves from "./versions_moves.js";
import * as files from "./versions_files.js";
import * as view from "./versions_view.js";

const EVERY_MS = 2_000;
const PATIENCE_MS = 10_000;

let state = null; // the last reply
let seenAt = 0; // when it came, by performance.now()
let seenClock = null; // and by the clock on the wall
let lost = false; // the last look failed
let looking = null; // the AbortController of the look in flight
let timer = 0;

// ------------------------------------------------------------------------------------------ looking

async function look() {
  clearTimeout(timer);
  if (document.hidden) return; // visibilitychange looks again
  if (looking) looking.abort();
  const mine = looking = new AbortController();
  const late = setTimeout(() => mine.abort("late"), PATIENCE_MS);
  try {
    const reply = await fetch("/v1/rollout", { cache: "no-store", headers: moves.shownKey(), signal: mine.signal });
    const told = await reply.json().catch(() => null);
    if (mine !== looking) return;
    if (reply.ok && told) show(told);
    else troubled(told && told.error ? told.error.message : `The service answered ${reply.status}.`);
  } catch {
    if (mine !== looking) return; // a newer look, or a move, has taken its place
    troubled("The service cannot be reached.");
  } finally {
    clearTimeout(late);
  }
  if (mine === looking) timer = setTimeout(look, EVERY_MS);
}

function show(told) {
  const before = state;
  state = told;
  seenAt = performance.now();
  seenClock = new Date();
  if (lost) announce("The service answers again.");
  else if (before && before.revision !== told.revision) announce("The pointer moved.");
  lost = false;
  at("trouble").replaceChildren();
  at("shown").hidden = false;
  parts();
  age();
}

function troubled(message) {
  if (!lost) {
    const kept = state ? `What is shown is what it said at ${clock(seenClock, false)}; buttons wait until it answers.` : "It is asked again every two seconds.";
    at("trouble").replaceChildren(make("div", "trouble", make("p", "", message), make("small", "", kept)));
  }
  lost = true;
  parts();
  age();
}

function age() {
  if (!state) return;
  const old = performance.now() - seenAt;
  at("age").classList.toggle("old", lost);
  at("age").textContent = lost || old > 2.5 * EVERY_MS ? `Not current: as it was ${span(old)} ago` : "Current, looked at every 2 s";
}

function announce(sentence) {
  at("status").textContent = sentence;
}

// ------------------------------------------------------------------------------------------ showing

const shown = new Map(); // part -> what it was made from

function parts() {
  if (!state) return;
  const { stable, canary, share, previous, revision, auto, versions, ledger, decisions, evidence } = state;
  const errors = [state.versions_error, state.ledger_error, state.decisions_error, state.evidence_error];
  part("pointer", [stable, canary, share, previous, revision, auto], () => view.pointer(state));
  part("share", [ledger, canary && Math.floor(seenAt / EVERY_MS), errors], () => view.shareOf(state, Date.now()));
  part("evidence", [evidence, canary, errors], () => view.evidence(state));
  part("versions", [versions, decisions, stable, canary, revision, lost, errors], () => view.versions(state, rowButtons));
  part("ledger", [ledger, errors], () => view.ledger(state));
  part("decisions", [decisions, errors], () => view.decisions(state));
  files.choices(versions);
  const hints = [
    button(at("promote"), moves.promotion(state), "Nothing to promote here: there is no canary."),
    button(at("rollback"), moves.wayBack(state), "Nothing to roll back: there is no canary and no version before."),
  ];
  at("moves-hint").textContent = lost ? "" : hints.filter(Boolean).join(" ");
}

function part(name, from, build) {
  const now = JSON.stringify(from);
  if (shown.get(name) === now) return;
  shown.set(name, now);
  const box = at(name);
  const open = new Set([...box.querySelectorAll("details[open]")].map((element) => element.dataset.key));
  const held = box.contains(document.activeElement) && keyed(document.activeElement);
  box.replaceChildren(...build());
  for (const element of box.querySelectorAll("details")) element.open = open.has(element.dataset.key);
  if (held) [...box.querySelectorAll("button, summary")].find((element) => keyed(element) === held)?.focus();
}

function keyed(element) {
  return element.dataset.key || element.parentElement?.dataset.key || "";
}

function rowButtons(version) {
  return moves.movesOf(version, state).map(({ move, off }) => {
    const element = make("button", "quiet small", move.verb);
    element.type = "button";
    element.disabled = Boolean(off) || lost;
    element.title = off;
    element.setAttribute("aria-label", `${move.verb}: ${version.id}`);
    element.dataset.key = `${move.verb} ${version.id}`;
    element.addEventListener("click", () => moves.ask(move));
    return element;
  });
}

function button(element, move, hint) {
  element.disabled = !move || lost;
  element.onclick = move ? () => moves.ask(move) : null;
  return move ? "" : hint;
}

// ------------------------------------------------------------------------------------------ beginning

files.begin();
moves.begin((told, done) => {
  looking = null; // a look that began before the move must not bring back what was
  clearTimeout(timer);
  show(told);
  at("said").textContent = done;
  at("said").hidden = false;
  announce(done);
  if (document.activeElement === document.body) at("now").focus(); // the button that was pressed may be gone
  timer = setTimeout(look, EVERY_MS);
});
at("zone").textContent = `Times are those of ${Intl.DateTimeFormat().resolvedOptions().timeZone || "this machine"}.`;
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
setInterval(age, 1_000);
look();
