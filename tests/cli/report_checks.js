// Runs in a page that `stepop report` wrote, after its own scripts; what it finds goes into an
// element of the document, a line each.
const run = () => {
  const lines = [];
  const check = (what, isTrue) => lines.push(`${isTrue ? "ok" : "FAILED"}: ${what}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const key = (element, name) => element.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const choose = (element, value, event) => {
    element.value = value;
    element.dispatchEvent(new Event(event));
  };
  const areDrawn = () => {
    const paths = all(".chart path").map((path) => path.getAttribute("d"));
    return paths.length > 0 && paths.every((path) => !/NaN|undefined|Infinity/.test(path)) && paths.some((path) => path.length > 10);
  };

  check("the page came to its end", document.documentElement.dataset.ready === "yes");
  check("nothing was loaded from elsewhere",
    performance.getEntriesByType("resource").every(({ name }) => name.startsWith("data:")));
  check("no text of the run became an element", all("main b, main script, main [onerror], img[src=x]").length === 0);
  check("nothing is wider than the window", document.documentElement.scrollWidth <= window.innerWidth);
  check("large numbers have commas", all(".legend td.number").every((cell) => !/^-?\d{4}/.test(cell.textContent)));
  check("no table is wider than its columns need",
    all(".scroll table").every((table) => {
      const before = table.offsetWidth;
      table.style.width = "1px";
      const needed = table.offsetWidth;
      table.style.width = "";
      return needed === before;
    }));
  check("every picture was decoded", all("img").every((image) => image.complete && image.naturalWidth > 0));
  check("each link of the page has its place", all("nav a").every((link) => document.querySelector(link.getAttribute("href")) !== null));
  check("each control has a name",
    all("input, select, button").every((control) => control.labels?.length || control.getAttribute("aria-label") || control.textContent));

  const charts = all(".chart svg[tabindex]");
  lines.push(`charts: ${all(".chart h3").map((title) => title.textContent).join(", ")}`);
  lines.push(`labels: ${all(".chart .legend tbody").map((body) => [...body.rows].map((row) => row.cells[0].textContent).join(", ")).join("; ")}`);
  lines.push(`facts: ${all(".fact").map((fact) => [...fact.children].map((part) => part.textContent).join(" ")).join("; ")}`);
  lines.push(`sections: ${all("h2").map((title) => title.textContent).join(", ")}`);
  if (charts.length > 0) {
    check("curves are drawn", areDrawn());
    key(charts[0], "End");
    check("the cursor is in all charts", all(".chart .cursor").length === charts.length);
    check("its place is told", /^step [\d,]+/.test(document.querySelector(".at").textContent));
    check("values at the cursor are told", all(".legend th.number").some((title) => title.textContent === "at cursor"));
    key(charts[0], "Home");
    key(charts[0], "ArrowRight");
    lines.push(`second place: ${document.querySelector(".at").textContent}`);
    key(charts[0], "Escape");
    check("the cursor goes", all(".chart .cursor").length === 0);
    const log = document.querySelector(".chart button");
    if (log) {
      const before = log.closest(".chart").querySelector("path.line").getAttribute("d");
      log.click();
      check("the logarithmic axis is another", areDrawn() && before !== log.closest(".chart").querySelector("path.line").getAttribute("d"));
      log.click();
    }
    for (const axis of ["epoch", "seconds", "step"]) {
      choose(document.querySelector(".bar select"), axis, "change");
      check(`curves are drawn by ${axis}`, areDrawn());
    }
    choose(document.querySelector(".bar input[type=range]"), 0.9, "input");
    check("smoothed curves are drawn over the raw ones", areDrawn() && all("path.raw").length > 0);
  }
  const sliders = all(".frame input[type=range]");
  if (sliders.length > 0) {
    const pictureOf = (slider) => slider.closest(".frame").querySelector("img, pre");
    const before = sliders.map((slider) => pictureOf(slider).src ?? pictureOf(slider).textContent);
    choose(sliders[0], 0, "input");
    check("a slider shows another frame", (pictureOf(sliders[0]).src ?? pictureOf(sliders[0]).textContent) !== before[0]);
    if (all("#pictures input[type=range]").length > 1) {
      check("its neighbours go with it", sliders[1].value === "0");
    }
  }
  const shown = document.createElement("pre");
  shown.id = "checks";
  shown.textContent = "\n" + lines.join("\n") + "\n";
  document.body.append(shown);
};

// A busy machine lays the page out later than its scripts run.
const isLaidOut = () =>
  document.documentElement.dataset.ready === "yes" &&
  [...document.images].every((image) => image.complete) &&
  [...document.querySelectorAll(".chart svg[tabindex]")].every((chart) => chart.querySelector("path.line"));
const waitAndRun = (looks) => (isLaidOut() || looks === 0 ? run() : setTimeout(() => waitAndRun(looks - 1), 100));
setTimeout(() => waitAndRun(80), 500);
