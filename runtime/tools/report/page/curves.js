// The curves of a run: which go into one chart, the view that all charts share, its controls.

const colors = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)"];
const dashes = ["", "6 4", "1.5 4", "9 3 2 3"];

// Units of what the runtime measures, where the name does not say one.
const units = { data_wait: "share of the time" };

// `validation/eval_op/accuracy/accuracy`: split, op and what it is, `accuracy`.
const partsOf = (name) => {
  const parts = name.split("/");
  if (parts.length < 3) return { split: parts.length > 1 ? parts[0] : "", op: "", key: parts[parts.length - 1] };
  const rest = parts.slice(2);
  const isTwice = rest.length > 1 && rest[rest.length - 1] === rest[rest.length - 2];
  return { split: parts[0], op: parts[1], key: (isTwice ? rest.slice(0, -1) : rest).join("/") };
};

// Curves of one name in one chart: a colour for each split, a dash for each op of it; on a page about several runs
// a colour for each run, a dash for each split and op.
const chartsOf = (curves) => {
  const splits = ["train", "validation"];
  const places = new Map();
  const charts = new Map();
  for (const curve of curves) {
    const { split, key } = partsOf(curve.name);
    if (!splits.includes(split)) splits.push(split);
    if (!charts.has(key)) charts.set(key, []);
    const series = charts.get(key);
    const { run } = curve;
    const same = series.filter((each) => each.split === split).length;
    if (!places.has(key)) places.set(key, []);
    if (!places.get(key).includes(curve.place)) places.get(key).push(curve.place);
    const also = (curve.also ?? []).map((name) => `, the same in ${partsOf(name).key}`).join("");
    const place = `${curve.place || curve.name}${also}`;
    const label = run ? `${run.label}: ${place}` : place;
    series.push({ split, label: curve.thinned ? `${label} *` : label, curve,
      color: run ? run.color : colors[splits.indexOf(split) % colors.length],
      dash: dashes[(run ? places.get(key).indexOf(curve.place) : same) % dashes.length] });
  }
  for (const series of charts.values()) series.sort((a, b) => splits.indexOf(a.split) - splits.indexOf(b.split));
  return charts;
};

// What is left of a step on the axis of epochs or of time: straight lines between known points.
const interpolate = ({ steps, values }, step) => {
  if (steps.length === 0) return step;
  const at = lowerBound(steps, step);
  if (at === 0) return steps[0] > 0 ? values[0] * step / steps[0] : values[0];
  if (at === steps.length) return values[at - 1];
  const share = (step - steps[at - 1]) / (steps[at] - steps[at - 1]);
  return values[at - 1] + share * (values[at] - values[at - 1]);
};

// What all charts share. `axis` is that of all curves, or null where each curve has its own.
class View {
  constructor(curves, axis) {
    this.kind = "step";
    this.smoothing = 0;
    this.cursor = null;
    this.limits = null;
    this.charts = [];
    this.show(curves, axis);
  }

  // Other curves; what the reader chose stays.
  show(curves, axis) {
    const unknown = { steps: [], values: [] };
    this.curves = curves;
    this.axis = axis && { epoch: unknown, seconds: unknown, ...axis };
    this.forget();
  }

  // The places of a curve's points on the axis.
  xs(curve) {
    if (!this.places.has(curve)) {
      const axis = this.kind === "step" ? null : (curve.axis ?? this.axis)[this.kind];
      this.places.set(curve, axis ? curve.steps.map((step) => interpolate(axis, step)) : curve.steps);
    }
    return this.places.get(curve);
  }

  forget() {
    this.places = new Map();
    let high = 0;
    let low = Infinity;
    const all = new Set();
    for (const curve of this.curves) {
      const xs = this.xs(curve);
      if (xs.length === 0) continue;
      low = Math.min(low, xs[0]);
      high = Math.max(high, xs[xs.length - 1]);
      for (const x of xs) all.add(x);
    }
    this.whole = low > high ? [0, 1] : [low <= high * 0.1 ? 0 : low, high > low ? high : low + 1];
    this.stops = [...all].sort((a, b) => a - b);
  }

  range() { return this.limits ?? this.whole; }

  // What is smoothed over, as a stretch of the axis: up to a fifth of the run.
  stretch() { return this.smoothing ** 2 * 0.2 * (this.whole[1] - this.whole[0]); }

  label(value) {
    if (this.kind === "step") return whole(value);
    if (this.kind === "epoch") return number(value);
    const [, right] = this.range();
    if (right > 7200) return `${number(value / 3600)} h`;
    return right > 200 ? `${number(value / 60)} min` : `${number(value)} s`;
  }

  setKind(kind) {
    this.kind = kind;
    this.cursor = null;
    this.limits = null;
    this.forget();
    this.drawAll();
  }

  zoom(limits) {
    this.limits = limits;
    this.drawAll();
  }

  moveCursor(x) {
    this.cursor = x === null ? null : this.stops[nearest(this.stops, x)] ?? null;
    for (const chart of this.charts) { chart.drawCursor(); chart.showValues(); }
    this.showPlace();
  }

  // The cursor to the next point of any curve in view, for the keyboard.
  stepCursor(count) {
    const [left, right] = this.range();
    const stops = this.stops.filter((stop) => stop >= left && stop <= right);
    if (stops.length === 0) return;
    const at = this.cursor === null ? (count > 0 ? -1 : stops.length) : nearest(stops, this.cursor);
    this.moveCursor(stops[Math.min(Math.max(at + count, 0), stops.length - 1)]);
  }

  drawAll() {
    for (const chart of this.charts) { chart.draw(); chart.showValues(); }
    this.reset.hidden = this.limits === null;
    this.showPlace();
  }

  stepAt(x) {
    if (this.kind === "step") return x;
    const { steps, values } = this.axis[this.kind];
    return Math.round(interpolate({ steps: values, values: steps }, x));
  }

  showPlace() {
    if (this.cursor === null) { this.place.textContent = ""; return; }
    if (this.axis === null) {
      this.place.textContent = this.kind === "seconds" ? duration(this.cursor) : `${this.kind} ${this.label(this.cursor)}`;
      return;
    }
    const step = this.stepAt(this.cursor);
    const texts = [`step ${whole(step)}`];
    if (this.axis.epoch.steps.length) texts.push(`epoch ${number(interpolate(this.axis.epoch, step))}`);
    if (this.axis.seconds.steps.length) texts.push(duration(interpolate(this.axis.seconds, step)));
    this.place.textContent = texts.join(" · ");
  }

  controls() {
    const axis = element("select", { onchange: () => this.setKind(axis.value) },
      element("option", { value: "step", text: "training steps" }), element("option", { value: "epoch", text: "epochs" }),
      element("option", { value: "seconds", text: "training time" }));
    const shown = element("output", { text: "off" });
    const slider = element("input", { type: "range", min: 0, max: 1, step: 0.02, value: 0, oninput: () => {
      this.smoothing = Number(slider.value);
      shown.textContent = this.smoothing > 0 ? this.smoothing.toFixed(2) : "off";
      this.drawAll();
    } });
    this.reset = element("button", { type: "button", text: "whole run", hidden: "", onclick: () => this.zoom(null) });
    this.place = element("output", { class: "at", "aria-live": "polite" });
    return element("div", { class: "bar" }, element("label", {}, "Axis", axis), element("label", {}, "Smoothing", slider, shown), this.reset, this.place);
  }
}

// The charts of a view's curves, in groups, which take the place of those that the view had.
const chartGroups = (view) => {
  const logarithmic = new Set(view.charts.filter((chart) => chart.isLog).map((chart) => chart.title));
  view.charts = [];
  const groups = new Map();
  for (const [key, series] of chartsOf(view.curves)) {
    const isMeasured = series.every(({ split }) => split === "runtime");
    const prefix = !isMeasured && key.includes("/") ? key.slice(0, key.lastIndexOf("/")) : "";
    const group = isMeasured ? "measured by the runtime" : prefix;
    if (!groups.has(group)) groups.set(group, []);
    const unit = isMeasured && units[key] ? `, ${units[key]}` : "";
    const chart = new Chart(prefix ? key.slice(prefix.length + 1) : key + unit, series, view);
    if (chart.canLog && logarithmic.has(chart.title)) chart.setLog(true);
    groups.get(group).push(chart);
    view.charts.push(chart);
  }
  const shown = [];
  for (const [group, charts] of groups) {
    if (group || shown.length) shown.push(element("div", { class: "group", text: group }));
    shown.push(element("div", { class: "charts" }, ...charts.map((chart) => chart.card)));
  }
  const isThinned = view.curves.some((curve) => curve.thinned);
  shown.push(element("p", { class: "quiet", text: "Move over a chart or use the arrow keys to read values; drag to zoom, double-click to see the whole run. × marks NaN or infinity."
    + (isThinned ? " * Thinned: of each group of steps the lowest and the highest point is shown." : "") }));
  return shown;
};

const curvesSection = (curves, axis, empty) => {
  const section = element("section", { id: "curves" }, element("h2", { text: "Curves" }));
  if (curves.length === 0) {
    section.append(element("p", { class: "empty", text: empty }));
    return section;
  }
  const view = new View(curves, axis);
  const area = element("div", {}, ...chartGroups(view));
  section.append(view.controls(), area);
  section.update = (now, axisNow) => {
    if (now.length === 0) return false;
    view.show(now, axisNow);
    area.replaceChildren(...chartGroups(view));
    view.drawAll();
    return true;
  };
  let width = 0;
  const drawToFit = () => {
    if (section.clientWidth === width) return;
    width = section.clientWidth;
    view.drawAll();
  };
  new ResizeObserver(drawToFit).observe(section);
  // The observer is called with the first frame, which a page in the background never gets.
  document.addEventListener("sections-are-there", drawToFit, { once: true });
  return section;
};
