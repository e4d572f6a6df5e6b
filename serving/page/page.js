// The web page: asks over POST /v1/answers with a stream, shows what comes, and carries the conversation itself.
//
// Everything that comes from the service is shown with textContent. Nothing here makes HTML out of a string, so a
// title, a passage or an answer can hold whatever it likes.

import { accountOf, factsOf } from "./account.js";
import { at, make } from "./elements.js";

const page = {
  ask: at("ask"), question: at("question"), send: at("send"), stop: at("stop"), fresh: at("fresh"),
  turns: at("turns"), welcome: at("welcome"), suggestions: at("suggestions"), status: at("status"),
};

let session = null; // as the last answer gave it: id, turns, pool
let running = null; // the AbortController of the answer being written
let count = 0; // answers shown so far, to give their sources ids

// ------------------------------------------------------------------------------------------ asking

async function ask(question) {
  page.welcome.hidden = true;
  page.fresh.hidden = false;
  const turn = addTurn(question);
  running = new AbortController();
  busy(true);
  try {
    await answer(question, turn, running.signal);
  } catch (error) {
    const stopped = error.name === "AbortError";
    turn.trouble(stopped ? "Stopped. What is shown is not a whole answer." : "The service cannot be reached.", question);
  } finally {
    running = null;
    busy(false);
    page.question.focus();
  }
}

async function answer(question, turn, signal) {
  const started = performance.now();
  const body = { question, stream: true, ...(session && { session }) };
  const reply = await fetch("/v1/answers", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  });
  if (!reply.ok) {
    const said = await reply.json().catch(() => null);
    const error = said && said.error ? said.error : { message: `The service answered ${reply.status}.` };
    turn.trouble(error.message, error.retryable === false ? null : question, error.request_id);
    return;
  }
  let ended = false;
  for await (const [name, payload] of eventsOf(reply.body)) {
    if (name === "delta") turn.add(payload.text);
    else if (name === "citation") turn.cite(payload);
    else if (name === "done") {
      ended = true;
      session = payload.session;
      turn.finish(payload, performance.now() - started);
    } else if (name === "error") {
      ended = true;
      turn.trouble(payload.error.message, payload.error.retryable ? question : null, payload.error.request_id);
    }
  }
  if (!ended) turn.trouble("The connection broke off. What is shown is not a whole answer.", question);
}

async function* eventsOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (held + value).split("\n\n");
    held = frames.pop();
    for (const frame of frames) {
      const fields = {};
      for (const line of frame.split("\n")) {
        const colon = line.indexOf(":");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart(); // a line starting with ":" is a comment
      }
      if (fields.data) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

// ------------------------------------------------------------------------------------------ showing

function addTurn(question) {
  const number = ++count;
  const turn = make("li");
  const card = make("div", "card");
  const text = make("p", "answer waiting", "Searching the library");
  card.append(text);
  turn.append(make("p", "question", question), card);
  page.turns.append(turn);
  turn.scrollIntoView({ block: "nearest" });

  let written = "";
  const cited = new Map();
  const show = () => {
    text.classList.remove("waiting");
    text.replaceChildren(...pieces(written, cited, number));
  };
  return {
    add(more) {
      written += more;
      show();
    },
    cite(citation) {
      cited.set(citation.marker, citation);
      show();
    },
    finish(told, ms) {
      written = told.answer;
      for (const citation of told.citations) cited.set(citation.marker, citation);
      show();
      const note = noteOn(told);
      if (note) card.append(make("p", "note", note));
      const sources = sourcesOf(told, number);
      if (sources) card.append(sources);
      card.append(factsOf(told, ms), accountOf(told));
      page.status.textContent = `${note || "The answer is complete."} Sources cited: ${told.citations.length}.`;
    },
    trouble(message, question, requestId) {
      if (!written) text.remove();
      const box = make("div", "trouble");
      box.setAttribute("role", "alert");
      box.append(make("p", "", message));
      if (requestId) box.append(make("small", "", `Request ${requestId}`));
      if (question) {
        const again = make("button", "quiet", "Ask again");
        again.type = "button";
        again.addEventListener("click", () => { if (!running) ask(question); });
        box.append(again);
      }
      card.append(box);
    },
  };
}

// The text with its markers as buttons. Code keeps its brackets: a marker in there is not a citation.
function pieces(text, cited, number) {
  const split = text.split(/(```[\s\S]*?```|`[^`\n]*`|\[S\d+\])/);
  // A raised number stands at its word: the blank before a marker is for readers of the plain text.
  const close = split.map((piece, i) => (cited.has((split[i + 1] || "").slice(1, -1)) ? piece.replace(/ +$/, "") : piece));
  return close.filter(Boolean).map((piece) => {
    if (piece.startsWith("`")) return make("code", "", piece.replace(/^`+|`+$/g, ""));
    const citation = cited.get(piece.slice(1, -1));
    if (!citation || !piece.startsWith("[S")) return document.createTextNode(piece);
    const label = citation.marker.slice(1);
    const chip = make("button", "cite", label);
    chip.type = "button";
    chip.title = citation.title;
    chip.setAttribute("aria-label", `Source ${label}: ${citation.title}`);
    chip.addEventListener("click", () => openSource(number, citation.marker));
    const raised = make("sup");
    raised.append(chip);
    return raised;
  });
}

function openSource(number, marker) {
  const source = at(`source-${number}-${marker}`);
  if (!source) return; // still being written: the list comes with the end
  source.open = true;
  source.scrollIntoView({ block: "nearest" });
  source.querySelector("summary").focus();
}

function sourcesOf(told, number) {
  if (!told.consulted.length) return null;
  const box = make("section", "sources");
  box.setAttribute("aria-label", "Sources");
  const cited = new Set(told.citations.map((citation) => citation.marker));
  if (cited.size) box.append(make("h2", "", "Sources"), ...told.citations.map((c) => sourceOf(c, number, told)));
  const others = told.consulted.filter((citation) => !cited.has(citation.marker));
  if (others.length) {
    const group = make("details", "group");
    group.append(make("summary", "", `Also consulted, not cited (${others.length})`), ...others.map((c) => sourceOf(c, number, told)));
    box.append(group);
  }
  return box;
}

function sourceOf(citation, number, told) {
  const source = make("details");
  source.id = `source-${number}-${citation.marker}`;
  const summary = make("summary");
  const about = [citation.place, citation.source, citation.published].filter(Boolean).join(" · ");
  summary.append(
    make("span", "number", citation.marker.slice(1)), make("span", "name", citation.title), make("span", "when", about),
  );
  source.append(summary, make("blockquote", "passage", citation.quote));
  const where = make("p", "where");
  const address = webAddress(citation.uri);
  if (address) {
    const link = make("a", "", "Open the source");
    link.href = address;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    where.append(link);
  }
  const turnNow = told.session.turns.filter((turn) => turn.role === "user").length;
  if (citation.joined_turn < turnNow) {
    where.append(document.createTextNode(`${address ? " · " : ""}Found for question ${citation.joined_turn} of this conversation`));
  }
  if (where.childNodes.length) source.append(where);
  return source;
}

// Only the web's own addresses become links; anything else a document says about itself stays text.
function webAddress(uri) {
  try {
    const address = new URL(uri);
    return ["http:", "https:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

function noteOn(told) {
  const said = {
    truncated: "The answer was cut off before its end.",
    blocked: "The model's safety filter blocked this answer.",
    refused: "The model declined to answer.",
    no_sources: "The library holds nothing that answers this.",
    interrupted: "The answer was interrupted; it is not whole.",
  }[told.status];
  if (said) return said;
  const wrong = (told.unsupported || []).map((one) => `“${one.lacking.join("”, “")}” (${one.markers.join(", ")})`);
  if (wrong.length) return `The cited sources do not state ${wrong.join("; ")}.`;
  if (told.grounding === "ungrounded") return "No source supports this: it is the model's own view.";
  if (told.grounding === "partial") return "Only a part of this rests on cited sources.";
  return "";
}

// ------------------------------------------------------------------------------------------ the form

function busy(yes) {
  page.send.hidden = yes;
  page.stop.hidden = !yes;
  page.turns.setAttribute("aria-busy", String(yes));
  if (yes) page.status.textContent = "Searching the library.";
}

function fit() {
  page.question.style.height = "auto";
  page.question.style.height = `${page.question.scrollHeight}px`;
}

page.ask.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = page.question.value.trim();
  if (!question || running) return;
  page.question.value = "";
  fit();
  ask(question);
});
page.question.addEventListener("input", fit);
page.question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    page.ask.requestSubmit();
  }
});
page.stop.addEventListener("click", () => running && running.abort());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) running.abort();
});
page.fresh.addEventListener("click", () => {
  if (running) running.abort();
  session = null;
  page.turns.replaceChildren();
  page.welcome.hidden = !page.suggestions.childElementCount;
  page.fresh.hidden = true;
  page.question.focus();
});

async function begin() {
  const reply = await fetch("/page/about.json");
  if (!reply.ok) return; // the page works without a title and suggestions
  const about = await reply.json();
  at("title").textContent = about.title;
  page.question.maxLength = about.max_question_chars;
  for (const text of about.suggestions) {
    const button = make("button", "", text);
    button.type = "button";
    button.addEventListener("click", () => { if (!running) ask(text); });
    const item = make("li");
    item.append(button);
    page.suggestions.append(item);
  }
  page.welcome.hidden = !about.suggestions.length || count > 0;
}
begin().catch(() => {});
