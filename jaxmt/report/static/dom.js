// Elements, numbers and data blocks: what all components share.
//
// Text only ever enters a page as text nodes: no component builds HTML from
// strings, so whatever a corpus holds is shown and never run.
"use strict";

const jaxmt = { components: {} };

// Returns an element. Attributes that are functions are event listeners.
jaxmt.h = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  return jaxmt.fill(element, attributes, children);
};

// Returns an element of a drawing.
jaxmt.svg = (name, attributes = {}, ...children) => {
  const space = "http://www.w3.org/2000/svg";
  return jaxmt.fill(
    document.createElementNS(space, name),
    attributes,
    children,
  );
};

jaxmt.fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((one) => one !== null && one !== undefined && one !== false),
  );
  return element;
};

// Replaces what an element holds.
jaxmt.show = (element, ...children) => {
  element.replaceChildren(...children.flat(Infinity).filter((one) => one));
  return element;
};

// A number as people read it.
jaxmt.number = (value, digits = 3) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value !== "number") return String(value);
  if (Math.abs(value) < 0.5 * 10 ** -digits) return "0";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value.toLocaleString("en", {
    maximumFractionDigits: digits,
    minimumFractionDigits: Math.min(digits, 2),
  });
};

jaxmt.signed = (value, digits = 2) =>
  (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);

jaxmt.words = (line) => (line ? line.split(" ") : []);

// Colours that differ in light and dark, and for most eyes.
jaxmt.colours = [
  "#3b7dd8",
  "#d9822b",
  "#4f9d69",
  "#a35fc0",
  "#c2475a",
  "#5b8a9a",
  "#8a7a2f",
  "#777777",
];
jaxmt.colour = (number) => jaxmt.colours[number % jaxmt.colours.length];

// Reads a block of data: plain JSON, or JSON that is compressed and kept as
// base64 until somebody asks for it.
jaxmt.block = (name) => {
  const known = (jaxmt.block.known ??= new Map());
  if (!known.has(name)) known.set(name, jaxmt.readBlock(name));
  return known.get(name);
};
jaxmt.readBlock = async (name) => {
  const element = document.getElementById(`data-${name}`);
  if (!element) return null;
  if (element.type === "application/json")
    return JSON.parse(element.textContent);
  const bytes = Uint8Array.from(atob(element.textContent), (c) =>
    c.charCodeAt(0),
  );
  const stream = new Blob([bytes])
    .stream()
    .pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
};

// A group of buttons of which one is chosen; arrows move.
jaxmt.choice = (label, names, chosen, onChoose) => {
  const buttons = names.map((name, place) =>
    jaxmt.h(
      "button",
      {
        type: "button",
        "aria-pressed": String(place === chosen),
        click: () => choose(place),
      },
      name,
    ),
  );
  const choose = (place) => {
    buttons.forEach((one, other) =>
      one.setAttribute("aria-pressed", String(other === place)),
    );
    onChoose(place);
  };
  return jaxmt.h(
    "span",
    { class: "row", role: "group", "aria-label": label },
    label ? jaxmt.h("span", { class: "faint small" }, label) : null,
    buttons,
  );
};

// A menu of which one line is chosen.
jaxmt.menu = (label, names, chosen, onChoose, attributes = {}) => {
  const select = jaxmt.h(
    "select",
    { change: () => onChoose(select.selectedIndex), ...attributes },
    names.map((name, place) =>
      jaxmt.h("option", { selected: place === chosen }, name),
    ),
  );
  return jaxmt.h(
    "label",
    { class: "row" },
    jaxmt.h("span", { class: "faint small" }, label),
    select,
  );
};

// Draws every component that stands in a page: an element whose attribute
// data-component names it, with a script of type application/json inside.
jaxmt.start = (root = document) => {
  for (const element of root.querySelectorAll(
    "[data-component]:not([data-drawn])",
  )) {
    const name = element.dataset.component;
    const data = element.querySelector("script[type='application/json']");
    if (!data || !jaxmt.components[name]) continue;
    element.dataset.drawn = "";
    const value = JSON.parse(data.textContent);
    element.replaceChildren(data);
    element.append(jaxmt.components[name](value));
  }
};
