// Pictures and texts over the steps of a run, each with a slider.

const framesSection = (id, title, given, isText) => {
  if (!given?.length) return null;
  const series = given.map((each) => ({ frames: [], left_out: 0, ...each }));
  const section = element("section", { id }, element("h2", { text: title }));
  const together = element("input", { type: "checkbox", checked: "" });
  if (series.filter((each) => each.frames.length > 1).length > 1) {
    section.append(element("div", { class: "bar", style: "position: static" }, element("label", {}, together, "move all sliders together")));
  }
  const cards = [];
  const movers = [];
  for (const each of series) {
    const card = frameCard(each, isText, (step) => {
      if (together.checked) for (const move of movers) move(step);
    });
    cards.push(card.element);
    movers.push(card.move);
  }
  section.append(element("div", { class: "frames" }, ...cards));
  const leftOut = series.reduce((sum, each) => sum + each.left_out, 0);
  if (leftOut > 0) {
    section.append(element("p", { class: "quiet",
      text: `${whole(leftOut)} of ${whole(series.reduce((sum, each) => sum + each.left_out + each.frames.length, 0))} are left out, evenly, so that this page stays small. All of them are in the run's folder.` }));
  }
  return section;
};

const frameCard = ({ title, frames, left_out: leftOut }, isText, onMove) => {
  if (frames.length === 0) {
    return { move: () => {}, element: element("figure", { class: "card frame" }, element("h3", { text: title }),
      element("p", { class: "quiet", text: `too large for this page (${whole(leftOut)} files)` })) };
  }
  const steps = frames.map((frame) => frame.step);
  const content = isText ? element("pre", { tabindex: "0" }) : element("div");
  const place = element("output");
  const slider = element("input", { type: "range", min: 0, max: frames.length - 1, step: 1, "aria-label": `step of ${title}` });
  const show = (i) => {
    slider.value = i;
    const { step, data: bytes } = frames[i];
    place.textContent = `step ${whole(step)}`;
    slider.setAttribute("aria-valuetext", `step ${step}`);
    if (isText) content.textContent = bytes;
    else content.replaceChildren(picture(bytes, `${title} at step ${step}`));
  };
  slider.addEventListener("input", () => {
    show(Number(slider.value));
    onMove(steps[Number(slider.value)]);
  });
  show(frames.length - 1);
  const control = element("div", { class: "control" }, frames.length > 1 ? slider : null, place);
  return { element: element("figure", { class: "card frame" }, element("h3", { text: title }), content, control),
    move: (step) => { const at = nearest(steps, step); if (Number(slider.value) !== at) show(at); } };
};
