// Elements and texts. Whatever comes from the run goes through textContent, never through markup.

// A part that could not be read is missing in it; `notes` says so.
let data = JSON.parse(document.getElementById("data").textContent);

const set = (element, attributes) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  return element;
};

const element = (name, attributes = {}, ...children) => {
  const made = set(document.createElement(name), attributes);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

const drawn = (name, attributes = {}) =>
  set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes);

const whole = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

// About four digits: 0.3124, 12.35, 6,842, 1.2e-5. NaN and infinity come as words, gaps as null.
const number = (value) => {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value === "nan" ? "NaN" : value.replace("inf", "∞");
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return whole(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [digits, exponent] = value.toExponential(3).split("e");
    return `${Number(digits)}e${Number(exponent)}`;
  }
  const digits = String(Number(value.toPrecision(4)));
  return size < 1e3 ? digits : whole(digits);
};

const duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 100) return `${Number(seconds.toFixed(1))} s`;
  const rounded = Math.round(seconds);
  const minutes = Math.floor(rounded / 60);
  if (minutes < 60) return `${minutes} min ${rounded % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
};

// 2026-11-21T10-00-00 as people write it.
const timeText = (name) => {
  const found = /^(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})/.exec(name);
  return found ? `${found[1]} ${found[2]}:${found[3]}:${found[4]}` : name;
};

// A picture, or a player of a sound.
const picture = (base64, description) => {
  if (base64.startsWith("UklGR")) {  // RIFF, the first bytes of a .wav file
    return element("audio", { controls: "", preload: "metadata", "aria-label": description, src: `data:audio/wav;base64,${base64}` });
  }
  const kind = base64.startsWith("/9j/") ? "jpeg" : "png";  // a JPEG's first three bytes
  const image = element("img", { alt: description, src: `data:image/${kind};base64,${base64}`, loading: "lazy", decoding: "async" });
  // Few pixels are shown as such, not blurred.
  const mark = () => image.classList.toggle("small", image.naturalWidth > 0 && image.naturalWidth < 400);
  if (image.complete) mark();
  image.addEventListener("load", mark);
  return image;
};

// A table; a cell is a text, an element, or {text, class}. `columns`: {title, note, text: bool}.
const table = (columns, rows) => {
  const cell = (name, content, column) => {
    const isPlain = content === null || typeof content !== "object" || content instanceof Node;
    const made = element(name, { class: [column.text ? "text" : "", isPlain ? "" : content.class].join(" ").trim() || undefined });
    made.append(isPlain ? content ?? "–" : content.text);
    return made;
  };
  const head = element("tr");
  for (const column of columns) {
    const title = cell("th", column.title, column);
    title.setAttribute("scope", "col");
    if (column.note) title.append(element("small", { text: column.note }));
    head.append(title);
  }
  const body = element("tbody");
  for (const row of rows) body.append(element("tr", {}, ...row.map((content, i) => cell("td", content, columns[i]))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table" },
    element("table", { class: "data" }, element("thead", {}, head), body));
};

// Notes and links to the sections, for the end of a page's head.
const notesAndLinks = (sections) => [
  data.notes?.length
    ? element("div", { class: "notes", role: "note" }, element("ul", {}, ...data.notes.map((text) => element("li", { text })))) : null,
  element("nav", { "aria-label": "sections" },
    ...sections.map((section) => element("a", { href: `#${section.id}`, text: section.querySelector("h2").textContent }))),
].filter(Boolean);

// The end of a page of `stepop report`: notes and links below its head, then its sections.
const showPage = (sections, written) => {
  document.getElementById("head").append(...notesAndLinks(sections));
  document.getElementById("main").append(...sections,
    element("footer", { text: `Written ${written ?? ""} by stepop report. This file needs nothing else: no network, no other file.` }));
  document.dispatchEvent(new Event("sections-are-there"));
  document.documentElement.dataset.ready = "yes";
};

// A page of parts: {id, make, from}, a section that is made by `make(...from)`, or null. `shows` is
// the data in it, `from` without one. A section may have `update(...from)`, which changes it where it
// stands, or returns false.
const showParts = (page) => {
  document.getElementById("head").append(...page.head());
  showPage(page.parts().map(({ make, from }) => make(...from)).filter(Boolean), page.written());
};
