// The page of `polyphony serve`. All numbers are those of the command's answers; this file only shows them.
"use strict";
const $ = id => document.getElementById(id);
const GIB = 2 ** 30, ROWS = 12;
const embedded = $("data").textContent.trim();
const sent = embedded !== "";  // An exported page: without a server.
let state = { question: null, job: null, status: null, answer: null, row: null, details: {}, pair: null, checked: [], all: false };
let seen = 0, timer = 0, asking = 0;

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter(each => each != null));
  return node;
}
const seconds = value => value == null ? "" : value >= 1000 ? value.toFixed(0) : value.toPrecision(4);
const gib = value => (value / GIB).toFixed(1);
const percent = value => value == null ? "" : (100 * value).toFixed(1);
const count = value => Math.round(value).toLocaleString("en-US");

class Refused extends Error { constructor(error) { super(error.what); this.error = error; } }
async function ask(path, body) {
  let reply;
  try {
    reply = await fetch(path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  } catch { throw new Refused({ what: "the server does not answer", fix: "is polyphony serve still running?" }); }
  const value = await reply.json();
  if (!reply.ok) throw new Refused(value.error);
  return value;
}
const words = error => [error.file, error.pointer].filter(Boolean).concat(error.what).join(": ") + (error.fix ? ` — to fix: ${error.fix}` : "");
function fail(error, where = $("error")) {
  where.replaceChildren(make("p", { class: "bad" }, error instanceof Refused ? words(error.error) : String(error)));
}

// ---- The question ----
function question() {
  const models = [$("model").value, $("model2").value].filter(text => text.trim());
  const asked = { models, gpus: `${$("nodes").value.trim()}x${$("per").value.trim()}x${$("kind").value.trim()}` };
  for (const id of ["seq", "images", "audio", "global_batch", "train", "precision", "for"]) if ($(id).value.trim()) asked[id] = $(id).value.trim();
  if ($("thorough").checked) asked.thorough = true;
  return asked;
}
function fill(asked) {
  $("model").value = asked.models?.[0] ?? ""; $("model2").value = asked.models?.[1] ?? "";
  [$("nodes").value, $("per").value, $("kind").value] = (asked.gpus ?? "1x8xH100").split("x");
  for (const id of ["seq", "images", "audio", "global_batch", "train", "precision", "for"]) $(id).value = asked[id] ?? "";
  $("thorough").checked = Boolean(asked.thorough);
}
function changed() { clearTimeout(timer); timer = setTimeout(preview, 350); }
async function preview() {
  const asked = question(), number = ++asking;
  if (!asked.models.length) return $("preview").replaceChildren();
  let found;
  try { found = await ask("api/preview", asked); } catch (error) { if (number === asking) fail(error, $("preview")); return; }
  if (number !== asking) return;
  const parameters = found.modules.map(each => make("tr", {}, make("td", { class: "text" }, each.module),
    make("td", { "data-parameters": each.parameters }, (each.parameters / 1e9).toPrecision(4)), make("td", {}, each.trainable)));
  const memory = found.memory.map(each => {
    if (each.why) return make("p", { class: "note" }, `${each.name}: ${each.why}`);
    const share = each.memory_bytes / each.device_memory_bytes;
    const meter = make("i"); meter.style.width = `${Math.min(100, 100 * share)}%`;
    return make("div", { class: "reference" }, make("small", { "data-bytes": each.memory_bytes },
      `${each.name}: ${gib(each.memory_bytes)} of ${gib(each.device_memory_bytes)} GiB${share > 1 ? " (does not fit)" : ""}`),
      make("div", { class: share > 1 ? "meter over" : "meter" }, meter));
  });
  $("preview").replaceChildren(make("h3", {}, "Parameters"), table(["Module", "Parameters [10⁹]", "Trained"], parameters, 1),
    make("h3", {}, `Memory of a GPU, ${found.gpus} GPUs`), ...memory, make("p", { class: "note" }, found.about));
}
function table(columns, rows, texts = 1) {
  return make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {},
    ...columns.map((name, number) => make("th", { scope: "col", class: number < texts ? "text" : "" }, name)))), make("tbody", {}, ...rows)));
}

// ---- The search ----
async function search() {
  $("error").replaceChildren();
  try {
    const status = await ask("api/jobs", question());
    clearResults(); state.question = status.question; follow(status.id);
  } catch (error) { fail(error); }
}
function clearResults() {
  state = { ...state, answer: null, row: null, details: {}, pair: null, checked: [], all: false }; seen = 0;
  for (const id of ["list", "detail", "pair", "error"]) $(id).replaceChildren();
}
function place() { history.replaceState(null, "", `#job=${state.job}${state.row == null ? "" : `&row=${state.row + 1}`}`); }
async function follow(id, row = null) {
  state.job = id; place();
  while (state.job === id) {
    let status;
    try { status = await ask(`api/jobs/${id}`); } catch (error) { $("status").textContent = ""; $("bar").hidden = true; return fail(error); }
    if (state.job !== id) return;
    if (!state.question) { state.question = status.question; fill(status.question); changed(); }
    state.status = status; showStatus();
    if (status.answers > seen) {
      const answer = await ask(`api/jobs/${id}/answer`);
      if (state.job !== id) return;
      Object.assign(state, { answer, details: {}, checked: [] }); showList(); seen = status.answers;
    }
    if (["done", "stopped", "failed"].includes(status.state)) {
      if (status.error) fail(new Refused(status.error));
      if (row != null && state.answer?.ranked[row]) choose(row, false);
      return;
    }
    await new Promise(done => setTimeout(done, 300));
  }
}
function showStatus() {
  const { state: now, ahead, percent: share, progress } = state.status;
  const said = { waiting: `Waiting: ${ahead} ${ahead === 1 ? "search is" : "searches are"} ahead of this one. It starts by itself.`,
    rough: "Searching: a first, rough pass", searching: "Searching: the rows below are rough estimates, and are being refined", done: "Done.",
    stopped: state.answer ? "Stopped: the rows are the best that were found until then." : "Stopped before any layout was found.", failed: "No answer." };
  const running = ["waiting", "rough", "searching"].includes(now);
  $("status").textContent = said[now] + (progress && running ? ` (${progress})` : "");
  $("stop").hidden = !running; $("stop").disabled = state.status.stopping; $("bar").hidden = !running || now === "waiting";
  if (share) $("bar").value = share; else $("bar").removeAttribute("value");
}
function showList() {
  const answer = state.answer;
  const rows = answer.ranked.slice(0, state.all ? undefined : ROWS).map((each, number) => make("tr",
    { class: number === state.row ? "picked" : "", "data-step": each.step_seconds, "data-bytes": each.peak_memory_bytes },
    make("td", { class: "text" }, make("button", { type: "button", class: "link", onclick: () => choose(number), onkeydown: arrows }, `${number + 1}. ${each.words}`)),
    make("td", {}, (each.simulated ? "" : "~") + seconds(each.step_seconds)),
    make("td", {}, (each.interval90_seconds ?? []).slice(0, 2).map(value => value.toPrecision(3)).join(" to ")),
    make("td", {}, count(each.tokens_per_second_per_rank)), make("td", {}, percent(each.mfu)), make("td", {}, gib(each.peak_memory_bytes)),
    make("td", {}, each.tied ? "yes" : "no"),
    make("td", {}, make("input", { type: "checkbox", "aria-label": `compare row ${number + 1}`, checked: state.checked.includes(number), onchange: event => check(number, event.target.checked) }))));
  const more = answer.ranked.length > ROWS && !state.all ? make("button", { type: "button", onclick: () => { state.all = true; showList(); } }, `Show all ${answer.ranked.length}`) : null;
  const chart = make("div", { id: "scatter" });
  $("list").replaceChildren(make("h2", {}, "Layouts, fastest first"), answer.question ? make("p", { class: "note" }, Object.values(answer.question).slice(1, 5).join(" · ")) : "",
    table(["Layout", "Step [s]", "90 % interval [s]", "Tokens/s/GPU", "MFU [%]", "Memory [GiB]", "Tied with first", "Compare"], rows),
    make("p", { class: "note" }, "~ is an estimate; others are simulated. Tied: the 90 % interval of the difference to the first row contains zero."),
    make("div", { class: "row" }, more, make("button", { type: "button", id: "compare", disabled: state.checked.length !== 2, onclick: compare }, "Compare the two marked"),
      make("button", { type: "button", id: "html", onclick: exportPage }, "Export as one HTML page")), chart);
  const x = answer.ranked.map(each => each.step_seconds), y = answer.ranked.map(each => each.peak_memory_bytes / GIB);
  plot(chart, [{ type: "scatter", mode: "markers", x, y, text: answer.ranked.map(each => each.words), hovertemplate: "%{text}<br>%{x:.4g} s, %{y:.1f} GiB<extra></extra>" }],
    { height: 230, xaxis: { title: "step time [s]" }, yaxis: { title: "memory [GiB]" } });
  chart.on?.("plotly_click", event => choose(event.points[0].pointIndex));
}
function arrows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const all = [...document.querySelectorAll("#list button.link")];
  all[all.indexOf(event.target) + step]?.focus(); event.preventDefault();
}
function check(number, on) {
  state.checked = on ? [...state.checked, number].slice(-2) : state.checked.filter(each => each !== number);
  document.querySelectorAll("#list tbody input").forEach((box, each) => { box.checked = state.checked.includes(each); });
  $("compare").disabled = state.checked.length !== 2;
}

// ---- One layout ----
const request = (number, more = {}) => ({ scenario: state.answer.scenario, models: state.question?.models, layout: state.answer.ranked[number].layout_form, ...more });
async function detailOf(number, set = "") {
  const key = `${number} ${set}`;
  return state.details[key] ??= await ask("api/layout", request(number, set ? { set } : {}));
}
async function choose(number, focus = true) {
  state.row = number; if (!sent) place();
  document.querySelectorAll("#list tbody tr").forEach((row, each) => row.classList.toggle("picked", each === number));
  $("pair").replaceChildren(); $("detail").replaceChildren(make("p", {}, "Predicting the step …"));
  const row = state.answer.ranked[number];
  let detail;
  try { detail = await detailOf(number); } catch (error) { return fail(sent ? new Refused({ what: "this row was not opened before the export" }) : error, $("detail")); }
  if (state.row !== number) return;
  const title = make("h2", { tabindex: -1 }, `${number + 1}. ${row.words}`);
  const box = make("div", { class: "charts" });
  const key = make("input", { id: "key", list: "keys", value: "layout.microbatches", "aria-label": "key" }), value = make("input", { id: "value", "aria-label": "value", placeholder: "32" });
  const framework = make("select", { id: "framework", "aria-label": "framework" }, ...(state.choices?.frameworks ?? []).map(name => make("option", {}, name)));
  const files = make("div", { id: "files" });
  const download = async path => {
    try {
      const packed = await ask(path, request(number, { framework: framework.value }));
      const bytes = Uint8Array.from(atob(packed.zip), each => each.charCodeAt(0));
      const one = packed.files.length === 1;
      save(one ? packed.files[0].text : bytes, one ? packed.files[0].name : `polyphony-${path.slice(4)}.zip`);
      files.replaceChildren(...(packed.notes ?? []).map(note => make("p", { class: "note" }, note)),
        ...packed.files.map(each => make("details", {}, make("summary", {}, each.name), make("pre", {}, each.text))));
    } catch (error) { fail(error, files); }
  };
  $("detail").replaceChildren(title, figures(detail.prediction, detail.plan), box,
    make("form", { class: "row live", id: "change", onsubmit: event => { event.preventDefault(); change(number, `${key.value.trim()}=${value.value.trim()}`); } },
      make("strong", {}, "Change one thing"), key, make("datalist", { id: "keys" }, ...["layout.microbatches", "layout.all.recompute", "layout.all.shard", "cluster.nic", "data.global_batch", "profile.gemm_efficiency"].map(each => make("option", { value: each }))),
      value, make("button", {}, "Predict both")),
    make("div", { class: "row live" }, make("button", { type: "button", id: "scenario", onclick: () => download("api/scenario") }, "Export scenario"), framework,
      make("button", { type: "button", id: "emit", onclick: () => download("api/emit") }, "Export launch files")), files);
  charts(box, [[`row ${number + 1}`, detail]]);
  if (focus) { title.focus(); title.scrollIntoView({ block: "start" }); }
}
function figures(prediction, plan) {
  const one = (name, text) => make("div", {}, make("span", {}, name), make("strong", {}, text));
  const interval = prediction.chance?.interval90_seconds;
  return make("div", { class: "figures", "data-step": prediction.step_seconds }, one("Step time [s]", seconds(prediction.step_seconds)),
    interval ? one("90 % interval [s]", interval.slice(0, 2).map(value => value.toPrecision(3)).join(" to ")) : null,
    one("Memory of the fullest GPU [GiB]", `${gib(prediction.peak_memory_bytes)} of ${gib(plan.device_memory_bytes)}${prediction.fits ? "" : ": does not fit"}`),
    one("MFU [%]", percent(prediction.mfu)), one("Tokens/s/GPU", count(prediction.tokens_per_second_per_rank)));
}
async function change(number, set) {
  $("pair").replaceChildren(make("p", {}, "Predicting both …"));
  try { showPair({ names: ["as found", set], of: [await detailOf(number), await detailOf(number, set)] }); } catch (error) { fail(error, $("pair")); }
}
async function compare() {
  const [a, b] = state.checked;
  $("pair").replaceChildren(make("p", {}, "Predicting both …"));
  try { showPair({ names: [`row ${a + 1}`, `row ${b + 1}`], of: [await detailOf(a), await detailOf(b)] }); } catch (error) { fail(error, $("pair")); }
}
function showPair(pair) {
  state.pair = pair;
  const [a, b] = pair.of.map(each => each.prediction);
  const line = (name, key, show) => make("tr", { "data-key": key }, make("td", { class: "text" }, name), make("td", { "data-value": a[key] }, show(a[key])), make("td", { "data-value": b[key] }, show(b[key])),
    make("td", {}, a[key] ? `${b[key] >= a[key] ? "+" : "−"}${Math.abs(100 * (b[key] / a[key] - 1)).toFixed(1)} %` : ""));
  const box = make("div", { class: "charts" }), title = make("h2", { tabindex: -1 }, `${pair.names[0]} and ${pair.names[1]}`);
  $("pair").replaceChildren(title, table(["", ...pair.names, "Difference"], [line("Step time [s]", "step_seconds", seconds), line("Memory [GiB]", "peak_memory_bytes", gib),
    line("MFU [%]", "mfu", percent), line("Tokens/s/GPU", "tokens_per_second_per_rank", count)]), ...pair.of.map((each, number) => each.prediction.fits ? "" : make("p", { class: "bad" }, `${pair.names[number]}: does not fit into memory`)), box);
  charts(box, pair.names.map((name, number) => [name, pair.of[number]]));
  title.focus(); title.scrollIntoView({ block: "start" });
}

// ---- Charts ----
const colors = ["#3b82c4", "#e08a2e", "#4ba36b", "#c45b6b", "#8a6fc4", "#9a7b5c", "#d17bb0", "#7f8a94", "#b0a832", "#35a5ad"];
function plot(node, traces, layout) {
  const style = getComputedStyle(document.documentElement), text = style.getPropertyValue("--text").trim(), line = style.getPropertyValue("--line").trim();
  const axis = given => ({ gridcolor: line, zerolinecolor: line, automargin: true, ...given, title: { text: given?.title ?? "" } });
  node.picture = [traces, layout];
  Plotly.react(node, traces, { margin: { l: 45, r: 10, t: 30, b: 40 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: text, size: 12 }, colorway: colors,
    legend: { orientation: "h", y: -0.25 }, ...layout, title: { text: layout.title ?? "", font: { size: 13 }, x: 0 }, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis) },
    { responsive: true, displayModeBar: false });
}
function charts(box, pairs) {
  const add = (kind, whole) => { const node = make("div", { class: `chart ${kind}${whole ? " whole" : ""}` }); box.append(node); return node; };
  plot(add("breakdown"), pairs.map(([name, each]) => {
    const parts = Object.entries(each.prediction.busiest_rank_seconds).filter(part => typeof part[1] === "number");
    return { type: "bar", orientation: "h", name, y: parts.map(part => part[0]), x: parts.map(part => part[1]), hovertemplate: "%{y}: %{x:.4g} s<extra></extra>" };
  }), { title: "Where the time goes, busiest rank", height: 290, showlegend: pairs.length > 1, xaxis: { ticksuffix: " s" }, yaxis: { autorange: "reversed" } });
  plot(add("memory"), pairs.flatMap(([name, each]) => (each.timeline?.memory ?? []).slice(0, pairs.length > 1 ? 4 : 12).map(rank => ({ type: "scatter", mode: "lines", line: { shape: "hv", width: 1.3, dash: name === pairs[1]?.[0] ? "dot" : "solid" },
    name: `${pairs.length > 1 ? name + ", " : ""}rank ${rank.rank}`, x: rank.seconds, y: rank.bytes.map(size => size / GIB) }))),
    { title: "Memory over time", height: 290, xaxis: { ticksuffix: " s" }, yaxis: { title: "GiB", rangemode: "tozero" } });
  for (const [name, each] of pairs) {
    if (!each.timeline) continue;
    plot(add("gantt", true), each.timeline.kinds.map((kind, number) => ({ type: "bar", orientation: "h", name: `${kind.module} ${kind.phase}`.trim() || "other", base: kind.start, x: kind.seconds, y: kind.rank.map(rank => `rank ${rank}`),
      customdata: kind.microbatch, marker: { color: colors[number % colors.length] }, hovertemplate: "%{fullData.name}, microbatch %{customdata}<br>from %{base:.4g} s for %{x:.3g} s<extra></extra>" })),
      { title: pairs.length > 1 ? `Gantt chart: ${name}` : "Gantt chart: compute of a rank of each stage", height: 130 + 24 * each.timeline.ranks.length, barmode: "overlay", bargap: 0.15, xaxis: { ticksuffix: " s" }, yaxis: { autorange: "reversed" } });
  }
}

// ---- Export and reading back ----
function save(content, name) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content])), download: name });
  link.click(); setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
async function source(name) {
  const kept = document.querySelector(`[data-file="${name}"]`);
  return kept ? kept.textContent : (await fetch(name)).text();
}
async function exportPage() {
  const { question: asked, answer, row, details, pair, status } = state;
  const data = JSON.stringify({ polyphony_page: 1, question: asked, answer, row, details, pair, state: status?.state }).replaceAll("<", "\\u003c");
  const [css, js, plotly] = await Promise.all(["page.css", "page.js", "plotly.min.js"].map(source));
  const script = (text, name) => `<script data-file="${name}">${text.replaceAll("</scr" + "ipt", "<\\/scr" + "ipt")}</scr` + "ipt>";
  const copy = document.body.cloneNode(true);
  for (const node of copy.querySelectorAll("script")) node.remove();
  for (const id of ["status", "error", "list", "detail", "pair", "preview"]) copy.querySelector("#" + id).replaceChildren();
  save(`<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><title>Polyphony: layouts</title><style data-file="page.css">${css}</style></head><body>${copy.innerHTML}<script id="data" type="application/json">${data}</scr` + `ipt>${script(plotly, "plotly.min.js")}${script(js, "page.js")}</body></html>`, "polyphony.html");
}
function readBack(data) {
  if (data?.polyphony_page !== 1 || !data.answer?.ranked) throw new Refused({ what: "this page holds no data of polyphony serve", fix: "drop a page that its export has written" });
  clearResults(); state.job = null;
  Object.assign(state, { question: data.question, answer: data.answer, details: data.details ?? {} });
  if (data.question) fill(data.question);
  $("status").textContent = sent ? "Exported by polyphony serve. Drop this file on its page to go on from it." : "Read back from an exported page.";
  $("bar").hidden = $("stop").hidden = true;
  showList();
  if (data.row != null) choose(data.row, false).then(() => { if (data.pair) showPair(data.pair); });
  else if (data.pair) showPair(data.pair);
}
async function take(file) {
  $("error").replaceChildren();
  try {
    if (file.size > 2 ** 27) throw new Refused({ what: "the file is larger than 128 MiB", fix: "drop a config.json or an exported page" });
    const text = await file.text();
    if (!/^\s*</.test(text)) { $("model").value = text; return changed(); }
    const held = new DOMParser().parseFromString(text, "text/html").getElementById("data");
    readBack(JSON.parse(held?.textContent || "null"));
    history.replaceState(null, "", "#");
  } catch (error) { fail(error); }
}

// ---- Start ----
function theme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
  for (const node of document.querySelectorAll(".js-plotly-plot")) if (node.picture) plot(node, ...node.picture);
}
async function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  theme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
  $("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  if (sent) { document.body.classList.add("sent"); return readBack(JSON.parse(embedded)); }
  $("form").addEventListener("submit", event => { event.preventDefault(); search(); });
  $("form").addEventListener("input", changed);
  $("stop").addEventListener("click", () => { $("stop").disabled = true; ask(`api/jobs/${state.job}/stop`, {}).catch(fail); });
  $("file").addEventListener("change", () => { if ($("file").files[0]) take($("file").files[0]); });
  $("preset").addEventListener("change", () => { if ($("preset").value) { $("model").value = $("preset").value; changed(); } });
  document.addEventListener("keydown", event => { if (event.ctrlKey && event.key === "Enter") { event.preventDefault(); search(); } });
  document.addEventListener("dragover", event => { event.preventDefault(); document.body.classList.add("dropping"); });
  document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.addEventListener("drop", event => { event.preventDefault(); document.body.classList.remove("dropping"); if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]); });
  const at = new URLSearchParams(location.hash.slice(1));
  try {
    state.choices = await ask("api/choices");
    $("kinds").append(...state.choices.accelerators.map(each => make("option", { value: each })));
    $("preset").append(...state.choices.presets.map(each => make("option", {}, each)));
    $("for").append(...state.choices.frameworks.map(each => make("option", {}, each)));
  } catch (error) { fail(error); }
  if (at.get("job")) follow(at.get("job"), at.get("row") ? Number(at.get("row")) - 1 : null);
}
start();
