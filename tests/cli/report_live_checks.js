// Runs in a page of `stepop report --live` whose run logs step 3 while it is open; what it finds goes into
// an element of the document, a line each.
const all = (selector) => [...document.querySelectorAll(selector)];
const choose = (element, value, event) => {
  element.value = value;
  element.dispatchEvent(new Event(event));
};
const loss = () => all(".chart").find((chart) => chart.querySelector("h3").textContent === "loss");
const points = () => loss().querySelector("path.dots").getAttribute("d").split("M").length - 1;

const lines = [];
const check = (what, isTrue) => lines.push(`${isTrue ? "ok" : "FAILED"}: ${what}`);
const kept = {};

const prepare = () => {
  check("the page came to its end", document.documentElement.dataset.ready === "yes");
  check("two points are there first", points() === 2);
  choose(document.querySelector(".bar select"), "epoch", "change");
  choose(all(".bar input[type=range]")[0], 0.5, "input");
  document.querySelector("#pictures .bar input").click();
  choose(all("#pictures input[type=range]")[0], 0, "input");
  for (const each of all("#log details, #config details")) each.open = !each.open;
  kept.details = all("details").map((each) => each.open).join();
  kept.config = document.getElementById("config");
  kept.image = all("#pictures img")[0];
  document.body.style.minHeight = "3000px";
  window.scrollTo(0, 300);
  document.querySelector(".bar select").focus({ preventScroll: true });
};

const finish = () => {
  check("the new point is drawn", points() === 3);
  check("the axis stays", document.querySelector(".bar select").value === "epoch");
  check("the smoothing stays", all(".bar input[type=range]")[0].value === "0.5" && all("path.raw").length > 0);
  check("the focus stays", document.activeElement === document.querySelector(".bar select"));
  check("the place of the page stays", window.scrollY === 300);
  check("what is open stays open", all("details").map((each) => each.open).join() === kept.details);
  check("what did not change is not touched", document.getElementById("config") === kept.config);
  check("a picture that did not change is not touched", all("#pictures img")[0] === kept.image);
  check("the log has its new line", all("#log").every((log) => log.textContent.includes("second")));
  check("nothing was loaded but the data",
    performance.getEntriesByType("resource").every(({ name }) => name.startsWith("data:") || name.endsWith("/data")));
  check("it says that it is live", document.querySelector(".live").textContent === "live");
  check("parts are there once", all("section").length === new Set(all("section").map(({ id }) => id)).size && all("footer").length === 1);
  check("links lead to parts", all("nav a").length === all("section").length);
  const steps = all("#pictures output").map((output) => output.textContent);
  lines.push(`pictures: ${steps[0]}, ${steps[document.title === "2 runs" ? 2 : 1]}`);
  const shown = document.createElement("pre");
  shown.id = "checks";
  shown.textContent = "\n" + lines.join("\n") + "\n";
  document.body.append(shown);
};

const until = (isTrue, then, looks = 90) => (isTrue() || looks === 0 ? then() : setTimeout(() => until(isTrue, then, looks - 1), 100));
setTimeout(() => until(() => loss()?.querySelector("path.dots"), () => {
  prepare();
  until(() => points() === 3, () => setTimeout(finish, 100), 80);
}, 10), 100);
