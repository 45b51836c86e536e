// The studio works without this file. It adds: dropping a file, live progress, copying, and fields that hide.
"use strict";

const drop = document.querySelector("[data-drop]");
if (drop) {
  const input = drop.querySelector("input[type=file]");
  const error = drop.querySelector("[data-error]");
  drop.querySelector(".drophint").hidden = false;
  const fits = () => {
    const file = input.files[0];
    const tooLarge = file && file.size > Number(drop.dataset.max);
    error.textContent = tooLarge ? "This file is larger than the studio takes." : "";
    return file && !tooLarge;
  };
  const send = () => { if (fits()) { drop.classList.add("busy"); drop.requestSubmit(); } };
  drop.addEventListener("submit", (event) => {
    if (!fits()) { event.preventDefault(); return; }
    const button = drop.querySelector("button");
    setTimeout(() => { button.disabled = true; button.textContent = "Reading …"; }, 0);
  });
  input.addEventListener("change", fits);
  for (const name of ["dragenter", "dragover"]) {
    window.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  window.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer && event.dataTransfer.files.length) {
      input.files = event.dataTransfer.files;
      send();
    }
  });
}

// A page that comes back from the browser's memory must not keep its button disabled.
window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });

const working = document.querySelector("[data-working]");
if (working) {
  const list = working.querySelector(".stages");
  const look = async () => {
    try {
      const answer = await fetch(working.dataset.working, { headers: { Accept: "application/json" } });
      if (!answer.ok) { window.location.reload(); return; }
      const state = await answer.json();
      if (state.finished) { window.location.replace(state.next); return; }
      working.querySelector("[data-seconds]").textContent = state.seconds;
      const stages = state.waiting ? ["Waiting for another comparison to end"] : state.stages;
      if (list.children.length !== stages.length || (list.firstElementChild && list.firstElementChild.textContent !== stages[0])) {
        list.replaceChildren(...stages.map((stage) => {
          const item = document.createElement("li");
          item.textContent = stage;
          return item;
        }));
      }
    } catch {
      working.querySelector("h1").textContent = "The studio does not answer any more";
      return;
    }
    setTimeout(look, 400);
  };
  setTimeout(look, 400);
}

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  const label = button.textContent;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}

for (const part of document.querySelectorAll("[data-for]")) {
  const [name, value] = part.dataset.for.split("=");
  const select = document.getElementById(name);
  const show = () => { part.hidden = select.value !== value; };
  select.addEventListener("change", show);
  show();
}
