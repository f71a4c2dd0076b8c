"use strict";
const box = document.getElementById("filter");
const rows = [...document.querySelectorAll("[data-text]")];
const count = document.getElementById("count");
let at = -1;
const shown = () => rows.filter((row) => !row.hidden);
function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) {
    row.hidden = !words.every((word) => row.dataset.text.includes(word));
  }
  count.textContent = words.length ? shown().length + " of " + rows.length : "";
  at = -1;
}
function go(step) {
  const all = shown();
  if (!all.length) return;
  at = Math.max(0, Math.min(all.length - 1, at + step));
  const summary = all[at].querySelector("summary");
  summary.focus();
  all[at].scrollIntoView({ block: "nearest" });
}
box.addEventListener("input", filter);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === box) {
    if (event.key === "Escape") { box.value = ""; filter(); box.blur(); }
    if (event.key === "Enter") { go(1); event.preventDefault(); }
    return;
  }
  if (event.key === "/") { box.focus(); event.preventDefault(); }
  if (event.key === "j") go(1);
  if (event.key === "k") go(-1);
});
addEventListener("beforeprint", () => document.querySelectorAll("details.problem").forEach((each) => { each.open = true; }));
