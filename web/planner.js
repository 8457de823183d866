// SPDX-License-Identifier: Apache-2.0
// The planner: one scenario, which the controls read and write, the address holds whole, and two
// workers forecast and search. It stands behind the script of reports (src/report/html/page.js).
"use strict";

const $ = (id) => document.getElementById(id);
const kStart = {
  stepcast: 1, model: "llama-3.1-70b", cluster: "dgx-h100x8",
  training: { global_batch: 128, sequence_length: 4096 }, layout: { tp: 8, pp: 4 },
};

// -- the scenario ---------------------------------------------------------------------------------
let scenario = structuredClone(kStart);
let catalog = null;     // what ships: models, clusters, keys
let kept = [];          // scenarios to compare: {name, scenario}

const valueAt = (path) => path.split(".").reduce((at, key) => at?.[key], scenario);

function setAt(path, value) {
  const keys = path.split(".");
  const last = keys.pop();
  let at = scenario;
  for (const key of keys) at = at[key] ??= {};
  if (value === undefined) delete at[last];
  else at[last] = value;
}

// "dgx-h100x8" is eight nodes of dgx-h100; a cluster of another form is shown as it is.
function clusterOf(text) {
  if (typeof text !== "string") return null;
  const whole = catalog.clusters.find((one) => one.name === text);
  if (whole) return { base: whole, nodes: 1 };
  const [, name, nodes] = text.match(/^(.*)x(\d+)$/) ?? [];
  const base = catalog.clusters.find((one) => one.name === name);
  return base ? { base, nodes: Number(nodes) } : null;
}

function modelOf(model) {
  if (typeof model === "string") return catalog.models.find((one) => one.name === model);
  const experts = ["num_local_experts", "num_experts", "n_routed_experts", "experts"]
    .map((key) => model?.[key] ?? model?.text_config?.[key]).find(Number.isInteger);
  return model ? { name: model.name ?? "config.json", experts } : undefined;
}

const gpus = () => {
  const cluster = clusterOf(scenario.cluster);
  return cluster ? cluster.base.gpus_per_node * cluster.nodes : 0;
};
const degree = (key) => valueAt("layout." + key) ?? 1;
const ranksOfData = () => Math.max(1, Math.floor(gpus() / (degree("tp") * degree("cp") * degree("pp"))));
const divisors = (number) => {
  const out = [];
  for (let i = 1; i <= number; i += 1) if (number % i === 0) out.push(i);
  return out;
};
const gcd = (a, b) => (b === 0 ? a : gcd(b, a % b));

// -- sliders --------------------------------------------------------------------------------------
// Each is a row of values. `get` undefined: the key is not stated, and its default holds.
const kAutomatic = "default";
const kSliders = [
  { key: "tp", title: "tp, tensor",
    values: () => divisors(gpus() / (degree("cp") * degree("pp"))) },
  { key: "pp", title: "pp, pipeline",
    values: () => divisors(gpus() / (degree("tp") * degree("cp"))) },
  { key: "dp", title: "dp, data", get: ranksOfData,
    values: () => divisors(gpus() / (degree("tp") * degree("cp"))),
    set: (value) => setAt("layout.pp", gpus() / (degree("tp") * degree("cp") * value)) },
  { key: "ep", title: "ep, expert", fixed: () => !modelOf(scenario.model)?.experts,
    values: () => divisors(gcd(modelOf(scenario.model)?.experts ?? 1,
                               ranksOfData() * degree("cp"))) },
  { key: "cp", title: "cp, context",
    values: () => divisors(gpus() / (degree("tp") * degree("pp"))) },
  { key: "micro_batch", title: "micro-batch",
    values: () => divisors(Math.max(1, Math.floor(valueAt("training.global_batch") / ranksOfData())))
      .filter((value) => value <= 64) },
  { key: "recompute", title: "recompute", values: () => ["none", "selective", "full"],
    get: () => valueAt("layout.recompute") ?? "none" },
  { key: "zero", title: "zero", values: () => [kAutomatic, 0, 1, 2, 3],
    get: () => valueAt("layout.zero") ?? kAutomatic },
];

// What does not go together any more follows the key that was changed.
function settle(changed) {
  const all = gpus();
  if (all === 0) return;
  const fit = (key, most) => {
    if (most % degree(key) !== 0) setAt("layout." + key, gcd(degree(key), most));
  };
  delete scenario.layout.dp;
  for (const [key, others] of [["tp", []], ["cp", ["tp"]], ["pp", ["tp", "cp"]]]) {
    fit(key, all / others.reduce((product, one) => product * degree(one), 1));
  }
  const ranks = ranksOfData();
  const experts = modelOf(scenario.model)?.experts;
  if (experts) fit("ep", gcd(experts, ranks * degree("cp")));
  else delete scenario.layout.ep;
  const batch = valueAt("training.global_batch");
  if (Number.isInteger(batch) && batch >= ranks) fit("micro_batch", Math.floor(batch / ranks));
  // An order of stages belongs to their number.
  if (changed === "pp" || changed === "dp") {
    const chunks = degree("virtual_stages");
    if (degree("pp") === 1) {
      for (const key of ["virtual_stages", "schedule", "stage_layers"]) delete scenario.layout[key];
    } else if (chunks > 1 && (modelOf(scenario.model)?.layers ?? 0) % (degree("pp") * chunks) !== 0) {
      for (const key of ["virtual_stages", "schedule"]) delete scenario.layout[key];
    }
  }
}

function makeSliders() {
  for (const slider of kSliders) {
    const row = document.createElement("div");
    row.className = "slider";
    const label = document.createElement("label");
    label.htmlFor = "slide-" + slider.key;
    label.textContent = slider.title;
    label.title = catalog.keys.get("layout." + slider.key)?.help ?? "";
    const input = document.createElement("input");
    Object.assign(input, { type: "range", id: label.htmlFor, min: "0", step: "1" });
    const output = document.createElement("output");
    output.htmlFor = label.htmlFor;
    row.append(label, input, output);
    $("sliders").append(row);
    slider.show = () => {
      const values = slider.values();
      const get = slider.get ?? (() => degree(slider.key));
      const value = get();
      if (!values.includes(value)) {
        values.push(value);
        values.sort((a, b) => a - b);
      }
      slider.shown = values;
      input.max = String(values.length - 1);
      input.value = String(values.indexOf(value));
      input.disabled = values.length < 2 || (slider.fixed?.() ?? false);
      row.classList.toggle("fixed", input.disabled);
      output.textContent = String(typeof value === "object" ? "as stated" : value);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      const value = slider.shown[Number(input.value)];
      if (slider.set) slider.set(value);
      else setAt("layout." + slider.key, value === kAutomatic ? undefined : value);
      settle(slider.key);
      changed();
    });
  }
}

// -- the other controls ---------------------------------------------------------------------------
function addOptions(select, values, titles = values) {
  select.replaceChildren(...values.map((value, i) => new Option(titles[i], value)));
}

// A value that the list has not is added to it, so that the control says what holds.
function choose(select, value, title) {
  if (![...select.options].some((option) => option.value === value)) {
    select.add(new Option(title ?? value, value));
  }
  select.value = value;
}

const choices = (key) => (catalog.keys.get(key)?.value ?? "").split(/, | or /);

function makeControls() {
  const models = catalog.models.filter((one) => one.forecast);
  addOptions($("model"), models.map((one) => one.name));
  addOptions($("cluster"), catalog.clusters.map((one) => one.name),
             catalog.clusters.map((one) => one.name + ": " + one.title));
  addOptions($("framework"), ["", ...choices("training.framework")],
             ["default", ...choices("training.framework")]);
  addOptions($("precision"), ["", ...choices("training.precision")],
             ["default", ...choices("training.precision")]);
  makeSliders();
  const on = (id, change, event = "input") => $(id).addEventListener(event, () => {
    change($(id).value);
    settle(id);
    changed();
  });
  on("model", (value) => (scenario.model = value === kOwnModel ? ownModel : value), "change");
  const place = () => {
    const nodes = Math.max(1, Math.floor(Number($("nodes").value)) || 1);
    scenario.cluster = nodes === 1 ? $("cluster").value : $("cluster").value + "x" + nodes;
  };
  on("cluster", place, "change");
  on("nodes", place);
  const whole = (path) => (value) => setAt(path, Number(value) || undefined);
  on("batch", whole("training.global_batch"));
  on("sequence", whole("training.sequence_length"));
  on("framework", (value) => setAt("training.framework", value || undefined), "change");
  on("precision", (value) => setAt("training.precision", value || undefined), "change");
  $("controls").addEventListener("submit", (event) => event.preventDefault());
}

const kShownKeys = new Set(["training.global_batch", "training.sequence_length",
  "training.framework", "training.precision", ...kSliders.map((one) => "layout." + one.key)]);

// Keys without a control, each with a button that takes it out.
function otherKeys() {
  const out = [];
  for (const part of ["training", "layout"]) {
    for (const [key, value] of Object.entries(scenario[part] ?? {})) {
      if (!kShownKeys.has(part + "." + key)) out.push([part + "." + key, value]);
    }
  }
  for (const key of Object.keys(scenario)) {
    if (!["stepcast", "model", "cluster", "training", "layout"].includes(key)) out.push([key, scenario[key]]);
  }
  return out;
}

function chip(words, title, remove) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "×";
  button.setAttribute("aria-label", title);
  button.addEventListener("click", remove);
  item.append(words, button);
  return item;
}

const wordOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function showControls() {
  const cluster = clusterOf(scenario.cluster);
  if (typeof scenario.model === "string") choose($("model"), scenario.model);
  else {
    ownModel = scenario.model;
    choose($("model"), kOwnModel, "your file: " + (modelOf(ownModel)?.name ?? "config.json"));
  }
  if (cluster) {
    choose($("cluster"), cluster.base.name);
    if (document.activeElement !== $("nodes")) $("nodes").value = cluster.nodes;
  } else {
    choose($("cluster"), wordOf(scenario.cluster));
  }
  for (const [id, key] of [["batch", "global_batch"], ["sequence", "sequence_length"]]) {
    if (document.activeElement !== $(id)) $(id).value = valueAt("training." + key) ?? "";
  }
  choose($("framework"), valueAt("training.framework") ?? "");
  choose($("precision"), valueAt("training.precision") ?? "");
  $("gpus").textContent = gpus() || "?";
  for (const slider of kSliders) slider.show();
  $("others").replaceChildren(...otherKeys().map(([path, value]) =>
    chip(`${path} = ${wordOf(value)}`, "Leave out " + path, () => {
      setAt(path, undefined);
      changed();
    })));
  $("kept").replaceChildren(...kept.map((one, i) => chip(one.name, "Forget " + one.name, () => {
    kept.splice(i, 1);
    showControls();
  })));
  $("compare").disabled = kept.length === 0;
  if (document.activeElement !== $("json")) $("json").value = JSON.stringify(scenario, null, 2);
}

// -- a model of one's own -------------------------------------------------------------------------
const kOwnModel = "\u0000own";
let ownModel = null;

async function takeFile(file) {
  let model;
  try {
    model = JSON.parse(await file.text());
  } catch (error) {
    return showErrors([{ text: `${file.name}: is no JSON (${error.message})` }]);
  }
  if (model?.stepcast !== undefined) {  // a whole scenario
    scenario = model;
  } else {
    const name = file.name.replace(/[.]json$/, "");
    model.name ??= model._name_or_path?.split("/").pop() || (name === "config" ? "my-model" : name);
    scenario.model = ownModel = model;
  }
  settle("model");
  changed();
}

addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", () => document.body.classList.remove("dropping"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  if (event.dataTransfer.files.length > 0) takeFile(event.dataTransfer.files[0]);
});
$("config").addEventListener("change", () => {
  if ($("config").files.length > 0) takeFile($("config").files[0]);
});

// -- workers --------------------------------------------------------------------------------------
// One that is asked again before it has answered skips to the newest question.
class Worked {
  constructor() {
    this.waiting = new Map();
    this.last = 0;
  }
  start() {
    if (this.worker) return;
    const code = new Blob([$("worker").textContent], { type: "text/javascript" });
    const place = URL.createObjectURL(code);
    this.worker = new Worker(place);
    URL.revokeObjectURL(place);
    this.worker.onmessage = ({ data }) => {
      if (data.progress) return this.progress?.(data.progress);
      const take = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.answer.broken) this.end();
      take(data.answer);
    };
    this.worker.onerror = (event) => {
      this.end();
      showErrors([{ text: event.message || "The worker could not be started." }]);
    };
  }
  ask(call, args = {}) {
    this.start();
    const id = (this.last += 1);
    return new Promise((take) => {
      this.waiting.set(id, take);
      this.worker.postMessage({ id, request: { call, arguments: args } });
    });
  }
  end() {
    this.worker?.terminate();
    this.worker = null;
    this.waiting.clear();
  }
}

const forecaster = new Worked();
const searcher = new Worked();

// -- the forecast ---------------------------------------------------------------------------------
function showErrors(errors) {
  $("errors").hidden = errors.length === 0;
  $("answer").classList.toggle("late", errors.length > 0);
  const items = errors.map((error) => {
    const item = document.createElement("li");
    item.textContent = error.text;
    return item;
  });
  const list = document.createElement("ul");
  list.append(...items);
  $("errors").replaceChildren("This is no scenario that can be forecast:", list);
  if (errors.length > 0) $("spoken").textContent = "No forecast: " + errors[0].text;
}

let asked = false;    // a forecast is being made
let newer = false;    // and the scenario has changed since
let took_ms = 0;      // from a change to its pictures

async function forecast() {
  if (asked) {
    newer = true;
    return;
  }
  asked = true;
  const start = performance.now();
  const answer = await forecaster.ask("predict", { scenario, pictures: true });
  asked = false;
  if (answer.errors) showErrors(answer.errors);
  else showForecast(answer);
  took_ms = performance.now() - start;
  document.body.dataset.took = took_ms.toFixed(1);
  document.body.dataset.answers = String(Number(document.body.dataset.answers ?? 0) + 1);
  if (newer) {
    newer = false;
    forecast();
  }
}

function showForecast(answer) {
  showErrors([]);
  const open = new Set([...$("answer").querySelectorAll("details[open] > summary")]
    .map((summary) => summary.textContent));
  const chosen = [...$("answer").querySelectorAll("input[type=radio]:checked")].map((one) => one.id);
  $("answer").innerHTML = answer.pictures;
  for (const summary of $("answer").querySelectorAll("details > summary")) {
    if (open.has(summary.textContent)) summary.parentElement.open = true;
  }
  for (const id of chosen) if (id && $(id)) $(id).checked = true;
  enliven($("answer"));
  const now = JSON.parse(answer.json);
  $("spoken").textContent = $("answer").querySelector(".verdict").textContent;
  $("brief").textContent = `${seconds(now.step_time_s)}, ${now.verdict}` +
    (now.mfu > 0 ? mfuText(now) : "");
  document.body.dataset.stepTime = now.step_time_s;
}

// -- the address, the command line ----------------------------------------------------------------
function toAddress(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromAddress(text) {
  try {
    const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const read = JSON.parse(new TextDecoder().decode(Uint8Array.from(letters, (c) => c.charCodeAt(0))));
    return read && typeof read === "object" && read.stepcast !== undefined ? read : null;
  } catch {
    return null;
  }
}

const quoted = (word) => (/^[\w.:=,+@%/-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'");

// Flags where the scenario is made of names and plain values, else its file.
function commandLine() {
  const plain = typeof scenario.cluster === "string" && Object.keys(scenario).every((key) =>
    ["stepcast", "model", "cluster", "training", "layout"].includes(key));
  if (!plain) return "stepcast predict scenario.json";
  const model = typeof scenario.model === "string" ? scenario.model : "config.json";
  const words = ["stepcast", "predict", "--model", model, "--cluster", scenario.cluster];
  const add = (path, value) => {
    const flag = catalog.keys.get(path)?.flag;
    if (flag && typeof value !== "object") words.push(flag, wordOf(value));
    else if (value && typeof value === "object" && !Array.isArray(value) && !flag) {
      for (const [key, one] of Object.entries(value)) add(path + "." + key, one);
    } else words.push("--set", path + "=" + wordOf(value));
  };
  for (const part of ["training", "layout"]) {
    for (const [key, value] of Object.entries(scenario[part] ?? {})) add(part + "." + key, value);
  }
  return words.map(quoted).join(" ");
}

function changed() {
  showControls();
  $("command").textContent = commandLine();
  history.replaceState(null, "", "#" + toAddress(scenario));
  $("copied").textContent = "";
  forecast();
}

function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

async function copy(text, words) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // pages from a disk may not
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  $("copied").textContent = words;
}

$("copy-link").addEventListener("click", () => copy(location.href, "The link is copied."));
$("copy-command").addEventListener("click", () =>
  copy($("command").textContent, "The command is copied."));
$("save-scenario").addEventListener("click", () =>
  save("scenario.json", JSON.stringify(scenario, null, 2) + "\n", "application/json"));
$("save-page").addEventListener("click", async () => {
  const answer = await forecaster.ask("predict", { scenario, page: true });
  if (answer.errors) showErrors(answer.errors);
  else save("stepcast.html", answer.page, "text/html");
});
$("json").addEventListener("input", () => {
  let read;
  try {
    read = JSON.parse($("json").value);
  } catch (error) {
    $("json-note").textContent = "This is no JSON yet: " + error.message;
    return;
  }
  if (read?.stepcast === undefined) return;
  $("json-note").textContent = "It counts.";
  scenario = { training: {}, layout: {}, ...read };
  changed();
});

// -- search ---------------------------------------------------------------------------------------
// Of long sequences the count that a causal mask leaves, as the page above it has.
const mfuText = (now) => {
  const causal = now.flops === "full" && now.resolved.training.sequence_length >= 32768;
  const share = causal ? now.mfu_causal : now.mfu;
  return `, MFU ${(100 * share).toFixed(1)} %${causal ? " causal" : ""}`;
};

const seconds = (time) => (time >= 1 ? time.toFixed(2) + " s" : (1000 * time).toFixed(1) + " ms");
const kPlaces = 10;  // that the search makes certain, and the page shows
let search = null;  // the best so far of the one that runs

function endSearch() {
  search = null;
  searcher.progress = null;
  $("search").disabled = false;
  $("stop").disabled = true;
  $("progress").hidden = true;
}

function showPlaces(layouts, words) {
  $("found").hidden = layouts.length === 0;
  $("found-words").textContent = words;
  $("places").tBodies[0].replaceChildren(...layouts.map(({ layout, step_time_s, scenario: one }) => {
    const row = document.createElement("tr");
    const time = document.createElement("td");
    time.className = "number";
    time.textContent = seconds(step_time_s);
    const name = document.createElement("td");
    name.textContent = layout;
    const use = document.createElement("td");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Show";
    button.setAttribute("aria-label", "Show the forecast of " + layout);
    button.addEventListener("click", () => {
      scenario = one;
      changed();
    });
    use.append(button);
    row.append(time, name, use);
    return row;
  }));
}

// Every layout key is searched, also those that the sliders have set.
function openScenario() {
  return { ...scenario, layout: {} };
}

$("search").addEventListener("click", async () => {
  const limit = Math.min(600, Math.max(1, Math.floor(Number($("limit").value)) || 30));
  search = {};
  $("search").disabled = true;
  $("stop").disabled = false;
  $("progress").hidden = false;
  $("progress").removeAttribute("value");
  $("told").textContent = "The search begins.";
  searcher.progress = (now) => {
    if (!search) return;
    search.best = now.best_scenario ? JSON.parse(now.best_scenario) : search.best;
    search.time = now.best_step_time_s;
    $("progress").value = Math.min(1, now.elapsed_s / limit);
    $("told").textContent = `${now.bounded} layouts bounded, ${now.replayed} forecast` +
      (now.best_step_time_s > 0 ? `; the best so far takes ${seconds(now.best_step_time_s)}` : "") +
      (now.bound_step_time_s > 0 ? `, and none is faster than ${seconds(now.bound_step_time_s)}.` : ".");
  };
  const answer = await searcher.ask("plan", {
    scenario: openScenario(), places: kPlaces, time_limit_s: limit });
  endSearch();
  if (answer.errors) {
    $("told").textContent = "The search found nothing: " + answer.errors.map((one) => one.text).join("; ");
    return;
  }
  const words = answer.layouts.length === 0 ? "No layout fits in memory."
    : answer.proven ? "These are proven to be the best places."
      : "These are the best that were found in the time; better ones are possible.";
  $("told").textContent = words;
  showPlaces(answer.layouts.slice(0, kPlaces), words);
  if (answer.layouts.length > 0) {
    scenario = answer.layouts[0].scenario;
    changed();
  }
});

// A worker that searches hears nothing until it has ended, so it is ended; its best so far stays.
$("stop").addEventListener("click", () => {
  const { best, time } = search ?? {};
  searcher.end();
  endSearch();
  if (!best) {
    $("told").textContent = "The search was stopped before it had found a layout.";
    return;
  }
  $("told").textContent =
    `The search was stopped; the best so far takes ${seconds(time)}. Better ones are possible.`;
  scenario = best;
  changed();
});

// -- comparison -----------------------------------------------------------------------------------
const layoutWords = (one) => ["tp", "pp", "cp", "ep", "micro_batch", "zero", "recompute"]
  .filter((key) => one.layout?.[key] !== undefined)
  .map((key) => `${key} ${wordOf(one.layout[key])}`).join(" · ") || "defaults";

$("keep").addEventListener("click", () => {
  const count = kept.length + 1;
  kept.push({ name: `${count}: ${layoutWords(scenario)}`, scenario: structuredClone(scenario) });
  showControls();
});

$("compare").addEventListener("click", async () => {
  const scenarios = [...kept, { name: "shown: " + layoutWords(scenario), scenario }];
  const answer = await forecaster.ask("compare", { scenarios, page: true });
  if (answer.errors) return showErrors(answer.errors);
  // Without its head, whose style this page has already.
  const main = answer.page.slice(answer.page.indexOf("<main>"), answer.page.lastIndexOf("</main>"));
  const page = new DOMParser().parseFromString(main, "text/html");
  // The forecast above tells the rest of the place that it shows.
  const sections = [...page.querySelectorAll("main > section")].filter((one) =>
    !one.querySelector("h2").textContent.startsWith("First place"));
  for (const section of sections) {  // the forecast has some of these ids too
    for (const one of [section, ...section.querySelectorAll("[id]")]) {
      if (one.id) one.id = "compared-" + one.id;
    }
    for (const name of ["aria-labelledby", "aria-controls", "data-for", "for"]) {
      for (const one of [section, ...section.querySelectorAll(`[${name}]`)]) {
        if (one.hasAttribute(name)) one.setAttribute(name, "compared-" + one.getAttribute(name));
      }
    }
  }
  $("comparison").replaceChildren(...sections);
  enliven($("comparison"));
  $("comparison").scrollIntoView({ block: "start" });
});

// -- start ----------------------------------------------------------------------------------------
async function begin() {
  const listed = (answer) => {
    if (answer.errors) throw new Error(answer.errors[0].text);
    return JSON.parse(answer.json);
  };
  const [models, clusters, keys] = await Promise.all(["models", "clusters", "keys"].map((topic) =>
    forecaster.ask("list", { topic }).then(listed)));
  catalog = { models, clusters, keys: new Map(keys.map((one) => [one.key, one])) };
  makeControls();
  scenario = fromAddress(location.hash.slice(1)) ?? scenario;
  scenario.training ??= {};
  scenario.layout ??= {};
  changed();
}

addEventListener("hashchange", () => {
  const read = fromAddress(location.hash.slice(1));
  if (!read || !catalog) return;
  scenario = { training: {}, layout: {}, ...read };
  changed();
});
begin();
