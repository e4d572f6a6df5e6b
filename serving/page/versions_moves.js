// Moving the pointer: what a button would do is shown and confirmed in a dialog, and refusals are shown in numbers.
//
// The admin key lives in this module alone: no storage and no cookie has it, and leaving the page forgets it. A way
// forward is refused when the pointer moved since it was shown; a way back names where to, and waits for nothing.
import { at, id, make, percent } from "./elements.js";

const field = (name) => at(`move-${name}`);
let key = "";
let asked = null; // the move that the dialog is about
let sending = false;

// The key as a header, where somebody has shown it: who moved the pointer and why is told to nobody else.
export function shownKey() {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

// ------------------------------------------------------------------------------------------ what can be done

export function promotion(state) {
  const { stable, canary, share, revision } = state;
  return canary === null ? null : {
    path: "promote", verb: "Promote", title: ["Promote ", id(canary), "?"], body: { version: canary, revision },
    effect: [`Everybody gets it, instead of ${percent(share)} of the sessions.`, ["A rollback would bring back ", id(stable), "."]],
    caution: caution(state), done: `${canary} is promoted: everybody gets it.`,
  };
}

export function wayBack({ stable, canary, share, previous }) {
  if (canary !== null) {
    return {
      path: "rollback", verb: "Roll back", title: ["Roll back ", id(canary), "?"], body: { to: stable },
      effect: [["Everybody gets ", id(stable), ` again; ${percent(share)} of the sessions leave the canary.`], "This never waits for evidence."],
      done: `${canary} is rolled back: everybody gets ${stable}.`,
    };
  }
  return previous === null ? null : returnTo({ stable, canary }, previous);
}

export function movesOf(version, state) {
  // What can be done with one row of the table. A disabled button says why in its title.
  const free = state.canary === null;
  if (version.state === "admitted") {
    const why = free ? "" : `${state.canary} is the canary: promote it or roll it back first.`;
    const canary = { move: beginning(version.id, state), off: state.stable === null ? "Nothing is stable yet: promote it." : why };
    return [canary, { move: directPromotion(version.id, state), off: why }];
  }
  const was = state.ledger.some((move) => [move.to.stable, move.from.stable].includes(version.id));
  return version.state === "retired" && was ? [{ move: returnTo(state, version.id), off: "" }] : [];
}

function beginning(version, { stable }) {
  return {
    path: "canary", verb: "Begin canary", title: ["Begin canary ", id(version), "?"], body: { version }, asksShare: true,
    effect: [["A share of the sessions gets it; all others stay on ", id(stable), "."], "It turns back by itself when it is shown to be worse, or stays undecided too long."],
    done: `${version} is the canary now.`,
  };
}

function directPromotion(version, { stable, revision }) {
  const back = stable === null ? "There is nothing a rollback could go back to." : ["A rollback would bring back ", id(stable), "."];
  return {
    path: "promote", verb: "Promote", title: ["Promote ", id(version), "?"], body: { version, revision },
    effect: ["Everybody gets it at once.", back], caution: stable === null ? "" : "No canary has shown how it does live.",
    done: `${version} is promoted: everybody gets it.`,
  };
}

function returnTo({ stable, canary }, version) {
  return {
    path: "rollback", verb: "Go back", title: ["Go back to ", id(version), "?"], body: { to: version },
    effect: [["Everybody gets ", id(version), " instead of ", id(stable), "."], ...(canary === null ? [] : [["The canary ", id(canary), " ends."]])],
    done: `Everybody gets ${version} again.`,
  };
}

function caution({ evidence, evidence_error: unread }) {
  if (unread || !evidence) return "Nothing is known live about it.";
  return {
    PASS: "", FAIL: "The live evidence says that it is worse.", ERROR: "The live evidence cannot be measured.",
    INCONCLUSIVE: "The live evidence does not show yet that it is as good.",
  }[evidence.outcome] || "";
}

// ------------------------------------------------------------------------------------------ asking

export function ask(move) {
  asked = move;
  field("title").replaceChildren(...move.title);
  const effects = move.effect.map((sentence) => make("p", "", ...[sentence].flat()));
  field("effect").replaceChildren(...effects, ...(move.caution ? [make("p", "trouble", move.caution)] : []));
  field("go").textContent = move.verb;
  field("share").hidden = !move.asksShare;
  field("keyed").hidden = Boolean(key);
  field("refusal").replaceChildren();
  field("form").reset();
  at("move").showModal();
  (key ? field("reason") : field("key")).focus();
}

function bodyOf(move) {
  const reason = field("reason").value.trim();
  const share = move.asksShare && field("percent").value ? { share: Number(field("percent").value) / 100 } : {};
  return { ...move.body, ...share, ...(move.asksShare && { auto: field("auto").checked }), ...(reason && { reason }) };
}

async function send(move, moved) {
  const shown = key || field("key").value.trim();
  if (!shown) return refuse("The admin key is needed: it is in the file that the settings name, or admin.key.", "key");
  busy(true);
  try {
    const reply = await fetch(`/v1/rollout/${move.path}`, {
      method: "POST", cache: "no-store", body: JSON.stringify(bodyOf(move)), signal: AbortSignal.timeout(60_000),
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${shown}` },
    });
    const told = await reply.json().catch(() => null);
    if (reply.status === 400 || reply.status === 409) key = shown; // the key is looked at first, so it was right
    if (!reply.ok) return refused(reply.status, told);
    key = shown;
    at("move").close();
    moved(told, move.done);
  } catch (error) {
    const late = error.name === "TimeoutError";
    const what = late ? "The service did not answer within a minute." : "The service cannot be reached, or the key holds letters that no header can.";
    refuse(`${what} Whether the pointer moved is shown on this page once it answers again.`);
  } finally {
    busy(false);
  }
}

function refused(status, told) {
  const error = (told && told.error) || { message: `The service answered ${status}.` };
  if (status === 401 || status === 403) key = ""; // asked for again, and never sent a second time unasked
  field("keyed").hidden = Boolean(key);
  refuse(error.message, key ? "reason" : "key", error.request_id);
}

function refuse(message, focus = "", requestId = "") {
  const small = requestId ? make("small", "", `Request ${requestId}`) : null;
  field("refusal").replaceChildren(make("div", "trouble", make("p", "", message), small));
  if (focus) field(focus).focus();
  showKey();
}

function busy(yes) {
  sending = yes;
  field("go").disabled = yes;
  field("form").setAttribute("aria-busy", String(yes));
}

function showKey() {
  at("forget").hidden = !key;
}

// ------------------------------------------------------------------------------------------ the dialog

export function begin(moved) {
  const after = (told, done) => {
    showKey();
    moved(told, done);
  };
  field("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!sending && asked) send(asked, after);
  });
  field("cancel").addEventListener("click", () => at("move").close());
  at("move").addEventListener("cancel", (event) => {
    if (sending) event.preventDefault(); // what was sent cannot be taken back: its reply is shown
  });
  at("move").addEventListener("close", () => {
    field("key").value = "";
    asked = null;
  });
  at("forget").addEventListener("click", () => {
    key = "";
    showKey();
    at("now").focus();
  });
}
