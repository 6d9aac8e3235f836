"use strict";
// Each entry of the list carries its data as JSON:
//   kind, rows [label], columns [label], weights [layer][head][row * columns + column] in 1/UNIT,
//   odd [layer][head] {row: sum} for rows that do not sum to 1
const UNIT = 10000;
const MEAN = -1;
const HAN = /^[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u{20000}-\u{3ffff}]+$/u;
const AXES = {
  cross: "output at the left, source on top",
  encoder: "source at the left and on top",
  decoder: "input at the left and on top",
};
const $ = (id) => document.getElementById(id);
const state = { entry: null, data: null, layer: 0, head: 0, cells: [], row: 0, column: 0 };

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function label(text) {
  const element = make("bdi", text);
  element.title = text;
  return element;
}

// Choosing a record

function entries() {
  return [...$("list").children].filter((entry) => !entry.hidden);
}

function step(by) {
  const shown = entries();
  const next = shown[shown.indexOf(state.entry) + by];
  if (next) location.hash = next.firstElementChild.getAttribute("href");
}

function follow() {
  const number = CSS.escape(location.hash.slice(1));
  const link = document.querySelector(`#list a[href="#${number}"]`);
  const entry = link ? link.parentElement : $("list").firstElementChild;
  if (entry) show(entry);
  else $("map").replaceChildren(make("p", "There are no records.", "empty"));
}

function show(entry) {
  if (state.entry) state.entry.firstElementChild.removeAttribute("aria-current");
  state.entry = entry;
  const link = entry.firstElementChild;
  link.setAttribute("aria-current", "true");
  link.scrollIntoView({ block: "nearest" });
  const data = (state.data = JSON.parse(entry.querySelector("script").textContent));
  const name = link.querySelector("i");
  $("heading").textContent = "Record " + link.querySelector("b").textContent + (name ? " · " + name.textContent : "");
  $("notes").textContent = [data.kind, AXES[data.kind.split(",")[0]]].join(" · ");
  const layers = data.weights.length, heads = data.weights[0].length;
  if (!fill("layers", layers, state.layer)) state.layer = layers - 1;
  if (!fill("heads", heads, state.head)) state.head = heads > 1 ? MEAN : 0;
  $("layers").querySelector("select").value = state.layer;
  $("heads").querySelector("select").value = state.head;
  state.row = state.column = 0;
  close();
  arrows();
  draw();
}

// Offer `count` choices and their mean; true where the present choice can stay.
function fill(id, count, present) {
  const select = $(id).querySelector("select");
  const same = select.dataset.count === String(count);
  $(id).hidden = count < 2;
  if (!same) {
    select.replaceChildren(new Option("mean of " + count, MEAN));
    for (let i = 0; i < count; i++) select.add(new Option(i + 1, i));
    select.dataset.count = count;
  }
  return same;
}

function arrows() {
  const shown = entries();
  const at = shown.indexOf(state.entry);
  $("previous").disabled = at <= 0;
  $("next").disabled = at + 1 >= shown.length;
  const all = $("list").children.length;
  const one = all === 1 ? " record" : " records";
  $("count").textContent = (shown.length < all ? shown.length.toLocaleString("en") + " of " : "") + all.toLocaleString("en") + one;
}

function search() {
  const wanted = $("search").value.toLowerCase().trim();
  for (const entry of $("list").children) {
    entry.hidden = !entry.firstElementChild.textContent.toLowerCase().includes(wanted);
  }
  arrows();
}

function close() {
  $("records").classList.remove("open");
  $("menu").setAttribute("aria-expanded", "false");
}

// Drawing

// The chosen weights, row by row, and the sums of rows that are no distributions.
function chosen() {
  const { data, layer, head } = state;
  const pick = (list, index) => (index === MEAN ? list : [list[index]]);
  const matrices = pick(data.weights, layer).flatMap((heads) => pick(heads, head));
  const odd = Object.assign({}, ...pick(data.odd, layer).flatMap((heads) => pick(heads, head)));
  const values = matrices[0].map((_, i) => {
    let sum = 0;
    for (const matrix of matrices) sum += matrix[i];
    return sum / matrices.length / UNIT;
  });
  return { values, odd };
}

function measure(texts) {
  const context = (measure.canvas ||= document.createElement("canvas")).getContext("2d");
  context.font = getComputedStyle($("map")).font;
  return Math.max(0, ...texts.map((text) => context.measureText(text).width)) * 0.88;
}

// How the tokens on top stand: lying where they fit over a cell; else Chinese, Japanese and Korean
// ones written downwards, the others steep. Gives each one's way, and the height of all.
function stances(labels, cell) {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const limit = rem * parseFloat(getComputedStyle($("map")).getPropertyValue("--label"));
  const han = labels.map((text) => HAN.test(text));
  const widest = (wanted) => measure(labels.filter((_, i) => han[i] === wanted));
  const lie = (wanted) => widest(wanted) <= cell - 4;
  const height = (wanted, share) => (lie(wanted) ? 36 : Math.min(widest(wanted) * share, limit) + 20);
  return {
    ways: labels.map((text, i) => ([...text].length < 2 || lie(han[i]) ? "flat" : han[i] ? "stacked" : "steep")),
    head: Math.ceil(Math.max(height(true, 1.2), height(false, Math.sin(Math.PI / 3)))),
  };
}

function draw() {
  const { data } = state;
  const { values, odd } = chosen();
  const width = data.columns.length, height = data.rows.length;
  const map = $("map");
  state.cells = [];
  $("readout").replaceChildren(make("span", "Point at a cell, or move over the map with the arrow keys. The dot marks the largest weight of a row."));
  warn(odd);
  if (!width || !height) {
    map.replaceChildren(make("p", "Nothing to draw: no tokens.", "empty"));
    return;
  }
  const top = $("full").checked ? 1 : Math.max(...values, 0) || 1;
  $("top").textContent = top === 1 ? "1" : top.toPrecision(3);
  const numbers = $("numbers").checked, sums = $("sums").checked;
  const room = map.clientWidth - Math.min(measure(data.rows) + 20, 150) - 60;
  const cell = Math.max(numbers ? 30 : 18, Math.min(44, Math.floor(room / (width + sums))));
  const { ways, head } = stances(data.columns, cell);

  const table = make("table", undefined, numbers ? "numbers" : "");
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", "Attention of each row's token over the tokens on top");
  table.style.setProperty("--cell", cell + "px");
  table.style.setProperty("--head", head + "px");
  const titles = table.createTHead().insertRow();
  titles.append(make("td"));
  data.columns.forEach((text, column) => {
    const th = make("th", undefined, ways[column]);
    th.scope = "col";
    th.append(label(text));
    titles.append(th);
  });
  if (sums) titles.append(make("td", "Σ", "sum"));
  const body = table.createTBody();
  for (let r = 0; r < height; r++) body.append(line(r, values.slice(r * width, (r + 1) * width), top, odd[r], sums));
  if (sums) body.append(totals(values, width, height));
  const frame = make("div", undefined, "frame");
  frame.append(table, make("div", undefined, "band"), make("div", undefined, "band"));
  map.replaceChildren(frame);
  state.row = Math.min(state.row, height - 1);
  state.column = Math.min(state.column, width - 1);
  state.cells[state.row][state.column].tabIndex = 0;
}

function line(row, values, top, odd, sums) {
  const tr = make("tr");
  const th = make("th");
  th.scope = "row";
  th.append(label(state.data.rows[row]));
  if (odd !== undefined) th.className = "odd";
  tr.append(th);
  const most = values.indexOf(Math.max(...values));
  state.cells.push(values.map((value, column) => {
    const level = Math.min(Math.max(value / top, 0), 1);
    const td = make("td", value.toFixed(2), (column === most ? "most" : "") + (level > 0.5 ? " strong" : ""));
    td.style.setProperty("--v", level.toFixed(4));
    td.title = `${state.data.rows[row]} → ${state.data.columns[column]}: ${value.toFixed(4)}`;
    td.tabIndex = -1;
    td.dataset.row = row;
    td.dataset.column = column;
    tr.append(td);
    return td;
  }));
  if (sums) tr.append(make("td", odd ?? values.reduce((a, b) => a + b, 0).toFixed(2), "sum"));
  return tr;
}

// How much each column was attended to by all rows together.
function totals(values, width, height) {
  const tr = make("tr");
  tr.append(make("th", "Σ"));
  for (let column = 0; column < width; column++) {
    let sum = 0;
    for (let row = 0; row < height; row++) sum += values[row * width + column];
    tr.append(make("td", sum.toFixed(1), "sum"));
  }
  return tr;
}

function warn(odd) {
  const rows = Object.keys(odd);
  $("warning").hidden = !rows.length;
  if (!rows.length) return;
  const more = rows.length > 1 ? ` (and ${rows.length - 1} more)` : "";
  $("warning").textContent = `Row ${+rows[0] + 1}, “${state.data.rows[rows[0]]}”, sums to ${odd[rows[0]]}, not 1${more}. The data is drawn as it is.`;
}

// Reading a cell

function point(td) {
  const row = +td.dataset.row, column = +td.dataset.column;
  const table = td.closest("table");
  for (const th of table.querySelectorAll("th.now")) th.classList.remove("now");
  td.parentElement.firstElementChild.classList.add("now");
  table.tHead.rows[0].cells[column + 1].classList.add("now");
  const [across, down] = document.querySelectorAll(".band");
  const first = state.cells[0][0], last = state.cells.at(-1).at(-1);
  place(across, first.offsetLeft, td.offsetTop, last.offsetLeft + last.offsetWidth - first.offsetLeft, td.offsetHeight);
  place(down, td.offsetLeft, first.offsetTop, td.offsetWidth, last.offsetTop + last.offsetHeight - first.offsetTop);
  const value = td.title.slice(td.title.lastIndexOf(" ") + 1);
  $("readout").replaceChildren(
    make("output", value), "  ", label(state.data.rows[row]), make("span", " → "), label(state.data.columns[column]),
    make("span", `  row ${row + 1}, column ${column + 1}`));
}

function place(band, left, top, width, height) {
  Object.assign(band.style, { left: left + "px", top: top + "px", width: width + "px", height: height + "px" });
}

function move(event) {
  const td = event.target.closest("td[data-row]");
  if (!td || event.altKey || event.metaKey) return;
  const far = event.ctrlKey ? Infinity : 1;
  const steps = {
    ArrowUp: [-far, 0], ArrowDown: [far, 0], ArrowLeft: [0, -far], ArrowRight: [0, far],
    Home: [event.ctrlKey ? -far : 0, -Infinity], End: [event.ctrlKey ? far : 0, Infinity],
  };
  const by = steps[event.key];
  if (!by) return;
  event.preventDefault();
  const clamp = (value, length) => Math.max(0, Math.min(length - 1, value));
  td.tabIndex = -1;
  state.row = clamp(+td.dataset.row + by[0], state.cells.length);
  state.column = clamp(+td.dataset.column + by[1], state.cells[0].length);
  const next = state.cells[state.row][state.column];
  next.tabIndex = 0;
  next.focus();
}

document.addEventListener("DOMContentLoaded", () => {
  addEventListener("hashchange", follow);
  let timer;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => state.data && draw(), 100);
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || /INPUT|SELECT/.test(event.target.tagName)) return;
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
    if (event.key === "/") { event.preventDefault(); $("search").focus(); }
  });
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("search").addEventListener("input", search);
  $("list").addEventListener("click", close);
  $("menu").addEventListener("click", () => {
    $("menu").setAttribute("aria-expanded", $("records").classList.toggle("open"));
  });
  for (const [id, name] of [["layers", "layer"], ["heads", "head"]]) {
    $(id).addEventListener("change", (event) => { state[name] = +event.target.value; draw(); });
  }
  for (const id of ["full", "numbers", "sums"]) $(id).addEventListener("change", draw);
  for (const kind of ["pointerover", "focusin"]) {
    $("map").addEventListener(kind, (event) => {
      const td = event.target.closest("td[data-row]");
      if (td) point(td);
    });
  }
  $("map").addEventListener("keydown", move);
  follow();
});
