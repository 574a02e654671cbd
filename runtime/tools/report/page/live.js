// Keeps a page as the files of its runs are: asks for what changed and replaces the parts that differ. What the
// reader chose, and the place where the page is, stay.

const every = 2000;  // milliseconds
let tag = "";
let isAsking = false;
let isHeld = false;  // a chart or a slider is dragged

const seen = new Map(page.parts().map(({ id, from, shows }) => [id, JSON.stringify(shows ?? from)]));

const signal = element("p", { class: "live", role: "status", text: "live" });
document.body.append(signal);

const focusables = (part) => [...part.querySelectorAll("a, input, select, button, summary, [tabindex]")];

// Whatever is open, scrolled or in focus in a part is so in the part that takes its place.
const replacePart = (before, now) => {
  const place = focusables(before).indexOf(document.activeElement);
  const scrolled = [...before.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop]);
  const titles = (part) => new Map([...part.querySelectorAll("details")].map((each) => [each.querySelector("summary").textContent.replace(/\d+/g, ""), each]));
  const opened = titles(before);
  before.replaceWith(now);
  for (const [title, each] of titles(now)) each.open = opened.get(title)?.open ?? each.open;
  [...now.querySelectorAll(".scroll, pre")].forEach((each, i) => {
    if (scrolled[i]) [each.scrollLeft, each.scrollTop] = scrolled[i];
  });
  if (place >= 0) focusables(now)[place]?.focus({ preventScroll: true });
};

const showFoot = () => {
  document.querySelector("footer").textContent =
    `As of ${page.written() ?? "the start"}, by stepop report --live. The page follows the run while it is open; stepop report writes it as a file.`;
};

const show = (now) => {
  data = now;
  const head = element("header", { id: "head" }, ...page.head());
  const sections = [];
  for (const { id, make, from, shows } of page.parts()) {
    const text = JSON.stringify(shows ?? from);
    const before = document.getElementById(id);
    if (before !== null && text === seen.get(id)) {
      sections.push(before);
      continue;
    }
    seen.set(id, text);
    if (before?.update?.(...from)) {
      sections.push(before);
      continue;
    }
    const section = make(...from);
    if (before !== null && section !== null) replacePart(before, section);
    else if (before !== null) before.remove();
    else if (section !== null && sections.length > 0) sections[sections.length - 1].after(section);
    else if (section !== null) document.getElementById("main").prepend(section);
    if (section !== null) sections.push(section);
  }
  head.append(...notesAndLinks(sections));
  replacePart(document.getElementById("head"), head);
  document.title = head.querySelector("h1").textContent;
  showFoot();
  document.dispatchEvent(new Event("sections-are-there"));
};

const ask = async () => {
  if (isAsking || isHeld || document.hidden) return;
  isAsking = true;
  try {
    const answer = await fetch("data", { headers: { "If-None-Match": tag } });
    if (answer.status === 200) {
      const now = await answer.json();
      tag = answer.headers.get("ETag") ?? "";
      show(now);
    } else if (answer.status !== 304) throw new Error(answer.statusText);
    signal.textContent = "live";
    signal.classList.remove("gone");
  } catch {
    signal.textContent = "stepop does not answer: the page no longer changes";
    signal.classList.add("gone");
  }
  isAsking = false;
};

for (const name of ["pointerdown", "pointerup", "pointercancel"]) {
  document.addEventListener(name, () => { isHeld = name === "pointerdown"; }, true);
}
document.addEventListener("visibilitychange", ask);
showFoot();
setInterval(ask, every);
