// What became of the files of a version: counts, and every file that failed, was skipped or needs a look.
//
// Names of files tell what there is, so the service tells them to whoever shows the admin key, and this asks for it.
import { absent, at, make, number, rowHead, table } from "./elements.js";
import * as moves from "./versions_moves.js";

const KINDS = [["indexed", "indexed"], ["warning", "with a warning"], ["skipped", "skipped"], ["failed", "failed"], ["records", "records left out"]];

export function begin() {
  at("files-form").addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
}

export function choices(versions) {
  // The newest first; what was chosen stays chosen.
  const box = at("files-version");
  const names = versions.map((version) => version.id).reverse();
  if ([...box.options].map((option) => option.value).join() === names.join()) return;
  const chosen = box.value;
  box.replaceChildren(...names.map((name) => new Option(name, name)));
  if (names.includes(chosen)) box.value = chosen;
  at("files-form").hidden = !names.length;
}

async function show() {
  const version = at("files-version").value;
  const typed = at("files-key").value.trim();
  const shown = typed ? { Authorization: `Bearer ${typed}` } : moves.shownKey();
  at("files-form").setAttribute("aria-busy", "true");
  try {
    const reply = await fetch(`/v1/versions/${encodeURIComponent(version)}/outcomes`, { cache: "no-store", headers: shown, signal: AbortSignal.timeout(20_000) });
    const told = await reply.json().catch(() => null);
    if (!reply.ok || !told) return say(make("div", "trouble", make("p", "", told?.error?.message || `The service answered ${reply.status}.`)));
    say(...outcomes(told));
  } catch {
    say(make("div", "trouble", make("p", "", "The service cannot be reached, or the key holds letters that no header can.")));
  } finally {
    at("files-form").removeAttribute("aria-busy");
    at("files-key").value = "";
  }
}

function say(...parts) {
  at("files").replaceChildren(...parts);
}

export function outcomes({ version, files, outcomes: told, more }) {
  if (!files) return [absent(`Not known: ${version} was not built on the machine that serves it.`)];
  const counts = make("ul", "facts");
  counts.append(make("li", "", make("strong", "", number(files.total)), files.total === 1 ? " file" : " files"));
  for (const [name, words] of KINDS) {
    if (files[name]) counts.append(make("li", name === "failed" ? "partial" : "", make("strong", "", number(files[name])), ` ${words}`));
  }
  if (!told.length) return [counts, absent("Nothing failed, nothing was skipped, nothing needs a look.")];
  const rows = told.map((one) => ({
    className: "",
    cells: [rowHead(one.path), make("td", "", one.status), make("td", "", make("code", "", one.code)), make("td", "", one.reason)],
  }));
  const rest = more ? [make("p", "hint", `and ${number(more)} more: tidegate build --json tells all of them`)] : [];
  return [counts, make("div", "stacked", table(`What became of the files of ${version}`, ["File", "Outcome", "Code", "Reason"], rows)), ...rest];
}
