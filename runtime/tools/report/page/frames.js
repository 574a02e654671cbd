// Pictures and texts over the steps of a run, each with a slider.

const framesSection = (id, title, given, isText) => {
  if (!given?.length) return null;
  const together = element("input", { type: "checkbox", checked: "" });
  const bar = element("div", { class: "bar", style: "position: static" }, element("label", {}, together, "move all sliders together"));
  const grid = element("div", { class: "frames" });
  const note = element("p", { class: "quiet" });
  const section = element("section", { id }, element("h2", { text: title }), bar, grid, note);
  let cards = new Map();
  const moveAll = (step) => {
    if (together.checked) for (const card of cards.values()) card.move(step);
  };
  // Cards of titles that are there already stay, at the step that is chosen, or at the newest.
  const fill = (all) => {
    const series = all.map((each) => ({ frames: [], left_out: 0, ...each }));
    const before = cards;
    cards = new Map();
    for (const each of series) {
      const card = before.get(each.title) ?? frameCard(each.title, isText, moveAll);
      card.fill(each.frames, each.left_out);
      cards.set(each.title, card);
    }
    const shown = [...cards.values()].map((card) => card.element);
    if (shown.length !== grid.children.length || shown.some((card, i) => card !== grid.children[i])) grid.replaceChildren(...shown);
    bar.hidden = series.filter((each) => each.frames.length > 1).length < 2;
    const leftOut = series.reduce((sum, each) => sum + each.left_out, 0);
    note.hidden = leftOut === 0;
    note.textContent = `${whole(leftOut)} of ${whole(series.reduce((sum, each) => sum + each.left_out + each.frames.length, 0))} are left out, evenly, so that this page stays small. All of them are in the run's folder.`;
  };
  fill(given);
  section.update = (_id, _title, now) => {
    if (!now?.length) return false;
    fill(now);
    return true;
  };
  return section;
};

const frameCard = (title, isText, onMove) => {
  let frames = [];
  const content = isText ? element("pre", { tabindex: "0" }) : element("div");
  const place = element("output");
  const slider = element("input", { type: "range", min: 0, step: 1, "aria-label": `step of ${title}` });
  const control = element("div", { class: "control" }, place);
  const card = element("figure", { class: "card frame" }, element("h3", { text: title }));
  let shown = null;
  const show = (i) => {
    slider.value = i;
    const { step, data: bytes } = frames[i];
    place.textContent = `step ${whole(step)}`;
    slider.setAttribute("aria-valuetext", `step ${step}`);
    if (bytes === shown) return;
    shown = bytes;
    if (isText) content.textContent = bytes;
    else showPicture(content, picture(bytes, `${title} at step ${step}`));
  };
  slider.addEventListener("input", () => {
    show(Number(slider.value));
    onMove(frames[Number(slider.value)].step);
  });
  const fill = (now, leftOut) => {
    const chosen = Number(slider.value) < frames.length - 1 ? frames[Number(slider.value)].step : null;
    frames = now;
    if (frames.length === 0) {
      card.replaceChildren(card.firstChild, element("p", { class: "quiet", text: `too large for this page (${whole(leftOut)} files)` }));
      return;
    }
    if (control.parentNode !== card) card.replaceChildren(card.firstChild, content, control);
    if (frames.length === 1) slider.remove();
    else if (slider.parentNode !== control) control.prepend(slider);
    slider.max = frames.length - 1;
    show(chosen === null ? frames.length - 1 : nearest(frames.map((frame) => frame.step), chosen));
  };
  const move = (step) => {
    if (frames.length === 0) return;
    const at = nearest(frames.map((frame) => frame.step), step);
    if (Number(slider.value) !== at) show(at);
  };
  return { element: card, fill, move };
};

// Puts a picture in the place of another, of the same size until it is decoded, so that what is below
// does not move.
const showPicture = (content, now) => {
  const before = content.querySelector("img");
  if (before?.naturalWidth > 0 && now instanceof HTMLImageElement) {
    set(now, { width: before.naturalWidth, height: before.naturalHeight, decoding: "sync" });
    now.classList.toggle("small", before.classList.contains("small"));
    now.addEventListener("load", () => { set(now, { width: now.naturalWidth, height: now.naturalHeight }); });
  }
  content.replaceChildren(now);
};
