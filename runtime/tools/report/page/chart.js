// One chart: an SVG, its legend, a logarithmic axis. What all charts share is in `view`.

const margin = { left: 56, right: 12, top: 8, bottom: 24 };
const height = 220;

// Round numbers within [low, high], about `count`.
const ticks = (low, high, count) => {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) found.push(Number((i * step).toPrecision(12)));
  return found;
};

// 1, 10, 100, ... within, with 2 and 5 when those are few.
const logTicks = (low, high) => {
  const decades = Math.log10(high) - Math.log10(low);
  const factors = decades < 1 ? [1, 2, 3, 5, 7] : decades < 3 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / 6));
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) {
    if (factors.length === 1 && power % every !== 0) continue;
    for (const factor of factors) {
      const tick = Number((factor * 10 ** power).toPrecision(6));
      if (tick >= low && tick <= high) found.push(tick);
    }
  }
  return found.length > 1 ? found : ticks(low, high, 4);
};

// Where `value` would stand in the ascending `values`.
const lowerBound = (values, value) => {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
};

// The point of a series that is nearest to x: its place, or -1.
const nearest = (xs, x) => {
  if (xs.length === 0) return -1;
  const at = lowerBound(xs, x);
  if (at === 0) return 0;
  return at === xs.length || x - xs[at - 1] <= xs[at] - x ? at - 1 : at;
};

// The mean of the points so far, each weighing less the further back it is on the axis, so that
// curves with few points and with many are smoothed alike. Gaps stay gaps.
const smoothed = (xs, values, stretch) => {
  let sum = 0;
  let weight = 0;
  let before = 0;
  return values.map((value, i) => {
    if (value === null) return null;
    const decay = Math.exp((before - xs[i]) / stretch);
    before = xs[i];
    sum = sum * decay + value;
    weight = weight * decay + 1;
    return sum / weight;
  });
};

class Chart {
  // `series`: {label, color, dash, curve}, a curve as the report's data has it.
  constructor(title, series, view) {
    this.title = title;
    this.series = series;
    this.view = view;
    this.clip = `clip-${view.charts.length}`;
    const values = series.flatMap((each) => each.curve.values.filter((value) => value !== null));
    this.low = values.reduce((a, b) => Math.min(a, b), Infinity);
    this.isLog = false;
    const high = values.reduce((a, b) => Math.max(a, b), 0);
    // Shares of 1, such as an accuracy, are read as they are.
    const isShare = high <= 1 && series.some((each) => each.curve.better === "higher");
    this.canLog = values.length > 1 && this.low > 0 && high / this.low > 5 && !isShare;
    this.svg = drawn("svg", { tabindex: 0, role: "img", "aria-label": this.description() });
    this.legend = element("tbody");
    this.hasBest = series.some((each) => each.curve.best);
    this.column = element("th", { class: "number", scope: "col", text: "last" });
    this.log = this.canLog
      ? element("button", { type: "button", "aria-pressed": "false", text: "log", "aria-label": `logarithmic axis for ${title}`,
          onclick: () => { this.setLog(!this.isLog); this.draw(); } })
      : null;
    this.card = element("figure", { class: "card chart" },
      element("div", { class: "top" }, element("h3", { text: title }), this.log), this.svg,
      element("table", { class: "legend" },
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, ""), this.column,
          this.hasBest ? element("th", { class: "number", scope: "col", text: "best" }) : null)),
        this.legend));
    this.listen();
    this.fillLegend();
  }

  setLog(isLog) {
    this.isLog = isLog;
    this.log.setAttribute("aria-pressed", isLog);
  }

  description() {
    const lasts = this.series.map((each) => `${each.label} ${number(each.curve.last?.value)}`).join(", ");
    return `${this.title} by step; last: ${lasts}. Arrow keys move the cursor.`;
  }

  listen() {
    const xAt = (event) => {
      const box = this.svg.getBoundingClientRect();
      return this.xScale ? this.xScale.invert(event.clientX - box.left) : null;
    };
    let from = null;
    this.svg.addEventListener("pointermove", (event) => {
      this.view.moveCursor(xAt(event));
      if (from !== null) this.drawZone(from, xAt(event));
    });
    this.svg.addEventListener("pointerleave", () => { if (from === null) this.view.moveCursor(null); });
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      from = xAt(event);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const [low, high] = [from, xAt(event)].sort((a, b) => a - b);
      from = null;
      const [left, right] = this.view.range();
      if (high - low > (right - left) * 0.02) this.view.zoom([Math.max(low, left), Math.min(high, right)]);
      else this.draw();
    });
    // Such as when the system takes the pointer: nothing is dragged any more.
    this.svg.addEventListener("pointercancel", () => { from = null; this.draw(); });
    this.svg.addEventListener("dblclick", () => this.view.zoom(null));
    this.svg.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
      if (event.key === "Escape") this.view.moveCursor(null);
      else if (event.key in steps) this.view.stepCursor(steps[event.key]);
      else return;
      event.preventDefault();
    });
  }

  fillLegend() {
    this.cells = this.series.map(({ label, color, dash, curve }) => {
      const swatch = drawn("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
      swatch.append(drawn("line", { x1: 1, x2: 25, y1: 5, y2: 5, stroke: color, "stroke-width": 2.5, "stroke-dasharray": dash || undefined }));
      const value = element("td", { class: "number" });
      const best = curve.best ? `${number(curve.best.value)} at ${whole(curve.best.step)}` : "";
      this.legend.append(element("tr", {}, element("td", { title: curve.name }, swatch, label), value,
        this.hasBest ? element("td", { class: "number", text: best }) : null));
      return value;
    });
    this.showValues();
  }

  // The values at the cursor, or the last ones.
  showValues() {
    const x = this.view.cursor;
    this.column.textContent = x === null ? "last" : "at cursor";
    this.series.forEach(({ curve }, i) => {
      const at = x === null ? -1 : nearest(this.view.xs(curve), x);
      const value = x === null ? curve.last?.value : at < 0 ? null : curve.values[at];
      this.cells[i].textContent = x !== null && at >= 0 && value === null ? "NaN or inf" : number(value);
    });
  }

  // [low, high] of what is in view, with some room.
  extent(lines) {
    let low = Infinity;
    let high = -Infinity;
    const [left, right] = this.view.range();
    for (const { xs, values } of lines) {
      for (let i = 0; i < xs.length; ++i) {
        const isShown = values[i] !== null && (!this.isLog || values[i] > 0);
        if (!isShown || xs[i] < left || xs[i] > right) continue;
        low = Math.min(low, values[i]);
        high = Math.max(high, values[i]);
      }
    }
    if (low > high) return this.isLog ? [0.1, 10] : [0, 1];
    // The largest numbers leave room to calculate with.
    const bounded = (value) => Math.min(Math.max(value, this.isLog ? 1e-300 : -1e300), 1e300);
    [low, high] = [bounded(low), bounded(high)];
    if (this.isLog) {
      const room = Math.exp((Math.log(high) - Math.log(low)) * 0.05);
      return low === high ? [low / 2, high * 2] : [bounded(low / room), bounded(high * room)];
    }
    const room = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * 0.06;
    return [low - (low >= 0 && low - room < 0 ? low : room), high + room];
  }

  draw() {
    const width = this.svg.clientWidth;
    if (width === 0) return;
    const stretch = this.view.stretch();
    const lines = this.series.map(({ curve, color, dash }) => {
      const raw = { xs: this.view.xs(curve), values: curve.values, color, dash };
      if (stretch === 0) return { raw, line: raw };
      const base = curve.means ?? curve;
      const xs = this.view.xs(base);
      return { raw, line: { xs, values: smoothed(xs, base.values, stretch), color, dash } };
    });
    const [left, right] = this.view.range();
    const [low, high] = this.extent(lines.map(({ line }) => line));
    const inner = width - margin.left - margin.right;
    const x = (value) => margin.left + (value - left) / (right - left || 1) * inner;
    x.invert = (pixel) => left + Math.min(Math.max((pixel - margin.left) / inner, 0), 1) * (right - left);
    const share = this.isLog ? (value) => (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low)) : (value) => (value - low) / (high - low);
    const y = (value) => height - margin.bottom - share(value) * (height - margin.top - margin.bottom);
    this.xScale = x;
    this.yScale = y;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const clip = drawn("clipPath", { id: this.clip });
    clip.append(drawn("rect", { x: margin.left - 3, y: margin.top - 4, width: inner + 6, height: height - margin.bottom - margin.top + 7 }));
    this.svg.replaceChildren(clip);
    this.drawAxes(width, x, y, left, right, this.isLog ? logTicks(low, high) : ticks(low, high, 5));
    for (const { raw, line } of lines) {
      if (line !== raw) this.drawLine(raw, x, y, left, right, "raw");
      this.drawLine(line, x, y, left, right, "line");
    }
    this.overlay = drawn("g");
    this.svg.append(this.overlay);
    this.drawCursor();
  }

  drawAxes(width, x, y, left, right, yTicks) {
    const bottom = height - margin.bottom;
    for (const tick of yTicks) {
      this.svg.append(drawn("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick) }));
      this.svg.append(drawn("text", { x: margin.left - 7, y: y(tick) + 4, "text-anchor": "end", text: number(tick) }));
    }
    this.svg.append(drawn("line", { class: "axis", x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom }));
    const marks = ticks(left, right, Math.max(2, Math.floor(width / 110)));
    for (const tick of marks) {
      const isClose = x(tick) > width - margin.right - 24;
      this.svg.append(drawn("line", { class: "axis", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 4 }));
      this.svg.append(drawn("text", { x: isClose ? width - margin.right : x(tick), y: height - 7, "text-anchor": isClose ? "end" : "middle",
        text: this.view.label(tick) }));
    }
  }

  // `kind`: the line itself, or the raw one behind a smoothed one. Gaps are marked once.
  drawLine({ xs, values, color, dash }, x, y, left, right, kind) {
    // One point beyond each edge, so that lines go on there; a clip keeps them inside.
    const first = Math.max(lowerBound(xs, left) - 1, 0);
    const last = Math.min(lowerBound(xs, right) + 1, xs.length - 1);
    const isInside = (i) => xs[i] >= left && xs[i] <= right;
    const isGap = (i) => values[i] === null || (this.isLog && values[i] <= 0);
    const place = (i) => `${x(xs[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    let line = "";
    let dots = "";
    let bad = "";
    let count = 0;
    let lastBad = -Infinity;
    for (let i = first; i <= last; ++i) {
      if (isInside(i) && values[i] === null && x(xs[i]) - lastBad > 9) {
        lastBad = x(xs[i]);
        bad += `M${lastBad - 3} ${margin.top + 1}l6 6m0 -6l-6 6`;
      }
      if (isGap(i)) continue;
      // A point between two gaps is a dot.
      line += i > first && !isGap(i - 1) ? `L${place(i)}` : `M${place(i)}h0`;
      if (!isInside(i)) continue;
      dots += `M${place(i)}h0`;
      ++count;
    }
    const shown = drawn("g", { "clip-path": `url(#${this.clip})` });
    shown.append(drawn("path", { class: kind, d: line, stroke: color, "stroke-dasharray": dash || undefined }));
    if (kind === "line" && count <= 40) shown.append(drawn("path", { class: "dots", d: dots, stroke: color }));
    if (bad) shown.append(drawn("path", { class: "bad", d: bad }));
    this.svg.append(shown);
  }

  drawZone(from, to) {
    const [a, b] = [this.xScale(from), this.xScale(to)].sort((left, right) => left - right);
    this.overlay.replaceChildren(drawn("rect", { class: "zone", x: a, width: b - a, y: margin.top, height: height - margin.top - margin.bottom }));
  }

  drawCursor() {
    if (!this.overlay) return;
    this.overlay.replaceChildren();
    const at = this.view.cursor;
    const [left, right] = this.view.range();
    if (at === null || at < left || at > right) return;
    const x = this.xScale(at);
    this.overlay.append(drawn("line", { class: "cursor", x1: x, x2: x, y1: margin.top, y2: height - margin.bottom }));
    for (const { curve, color } of this.series) {
      const xs = this.view.xs(curve);
      const i = nearest(xs, at);
      if (i < 0 || curve.values[i] === null || xs[i] < left || xs[i] > right) continue;
      this.overlay.append(drawn("circle", { cx: this.xScale(xs[i]), cy: this.yScale(curve.values[i]), r: 3.5, fill: color, stroke: "var(--card)", "stroke-width": 1.5 }));
    }
  }
}
