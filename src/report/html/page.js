// SPDX-License-Identifier: Apache-2.0
// Sorting, filtering and saving of tables, the zoom of pictures, the theme. Nothing is fetched.
"use strict";

const root = document.documentElement;
root.classList.add("scripted");

// -- theme --------------------------------------------------------------------------------------
const themes = ["automatic", "light", "dark"];
const themeButton = document.getElementById("theme");

function remembered() {
  try {
    return localStorage.getItem("stepcast-theme");
  } catch {
    return null;  // pages from disk may have no storage
  }
}

function showTheme(theme) {
  if (theme === "automatic") delete root.dataset.theme;
  else root.dataset.theme = theme;
  themeButton.textContent = "Theme: " + theme;
}

let theme = themes.includes(remembered()) ? remembered() : "automatic";
showTheme(theme);
themeButton.addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  showTheme(theme);
  try {
    localStorage.setItem("stepcast-theme", theme);
  } catch {
    // It then holds for this visit.
  }
});

// -- tables -------------------------------------------------------------------------------------
function keyOf(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return cell.textContent.trim();
}

// Numbers before words, what is empty last in either direction.
function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === "");
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * a.localeCompare(b, "en", { numeric: true });
}

function sortBy(title) {
  const table = title.closest("table");
  const column = title.cellIndex;
  const numeric = title.classList.contains("number");
  const first = numeric ? "descending" : "ascending";
  const second = numeric ? "ascending" : "descending";
  const order = title.getAttribute("aria-sort") === first ? second : first;
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) {
    other.setAttribute("aria-sort", other === title ? order : "none");
  }
  const sign = order === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, key: keyOf(row, column) }));
  rows.sort((a, b) => compare(a.key, b.key, sign));
  body.append(...rows.map((entry) => entry.row));
}

function csvOf(table) {
  const quoted = (text) => (/[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const line = (cells) => cells.map(quoted).join(",");
  const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) =>
    line([...row.cells].map((cell) => cell.dataset.value ?? cell.textContent.trim())));
  return [line(titles), ...rows].join("\r\n") + "\r\n";
}

function enlivenTables(part) {
  for (const button of part.querySelectorAll("th .sort")) {
    button.addEventListener("click", () => sortBy(button.closest("th")));
  }

  for (const input of part.querySelectorAll(".filter")) {
    const rows = document.getElementById(input.getAttribute("aria-controls")).tBodies[0].rows;
    const count = input.closest(".bar").querySelector(".count");
    const texts = new Map([...rows].map((row) => [row, row.textContent.toLowerCase()]));
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const [row, text] of texts) {
        row.hidden = !words.every((word) => text.includes(word));
        if (!row.hidden) shown += 1;
      }
      count.textContent = shown + " of " + texts.size;
    });
  }

  for (const button of part.querySelectorAll(".save")) {
    button.addEventListener("click", () => {
      const table = document.getElementById(button.getAttribute("aria-controls"));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
      link.download = table.id + ".csv";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
}

// -- zoom ---------------------------------------------------------------------------------------
const kLargestZoom = 64;

function enlivenZoom(part) {
  for (const bar of part.querySelectorAll(".zoom")) {
    const picture = document.getElementById(bar.dataset.for);
    const box = picture.parentElement;
    const [out, all, into] = bar.querySelectorAll("button");
    const first = Number(picture.getAttribute("class").match(/zoom-(\d+)/)[1]);
    let zoom = first;
    const show = (next) => {
      const middle = (box.scrollLeft + box.clientWidth / 2) / box.scrollWidth;
      picture.classList.replace("zoom-" + zoom, "zoom-" + next);
      zoom = next;
      box.scrollLeft = middle * box.scrollWidth - box.clientWidth / 2;
      out.disabled = all.disabled = zoom === 1;
      into.disabled = zoom === kLargestZoom;
      bar.querySelector("[role=status]").textContent = zoom + "×";
    };
    out.addEventListener("click", () => show(Math.max(1, zoom / 2)));
    all.addEventListener("click", () => show(1));
    into.addEventListener("click", () => show(Math.min(kLargestZoom, zoom * 2)));
    show(first);
  }
}

// -- points of a chart --------------------------------------------------------------------------
// The one under the pointer, or the next along the x axis by arrow keys, is said below the chart.
function enlivenPoints(part) {
  for (const chart of part.querySelectorAll(".points")) {
    const said = chart.querySelector(".said");
    const points = [...chart.querySelectorAll(".point")];
    let inOrder = null;  // needs a chart that shows
    let chosen = null;
    const choose = (point) => {
      chosen?.classList.remove("chosen");
      chosen = point;
      chosen.classList.add("chosen");
      said.textContent = point.querySelector("title").textContent;
    };
    for (const point of points) point.addEventListener("pointerenter", () => choose(point));
    chart.querySelector(".scroll").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || points.length === 0) return;
      event.preventDefault();
      inOrder ??= points.map((point) => ({ point, box: point.getBBox() }))
        .sort((a, b) => a.box.x - b.box.x || a.box.y - b.box.y).map((entry) => entry.point);
      const at = chosen ? inOrder.indexOf(chosen) : step < 0 ? inOrder.length : -1;
      choose(inOrder[Math.min(Math.max(at + step, 0), inOrder.length - 1)]);
    });
  }
}

// A part of a page whose buttons, filters and charts were not there before.
function enliven(part) {
  enlivenTables(part);
  enlivenZoom(part);
  enlivenPoints(part);
}
enliven(document);

// -- print --------------------------------------------------------------------------------------
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) {
    details.open = true;
    addEventListener("afterprint", () => (details.open = false), { once: true });
  }
});
