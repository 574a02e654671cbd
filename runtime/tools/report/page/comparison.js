// The parts of a page about several runs, in their order.

let runs = [];

const readRuns = () => {
  runs = (data.runs ?? []).map((each, i, all) => ({ ...each,
    color: all.length <= colors.length ? colors[i] : `hsl(${Math.round((360 * i) / all.length)} 65% 50%)` }));
};

const swatch = (color) => {
  const shown = drawn("svg", { viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" });
  shown.append(drawn("circle", { cx: 5, cy: 5, r: 4, fill: color }));
  return shown;
};

const labelled = (label) => {
  const found = runs.find((each) => each.label === label);
  return element("span", {}, ...(found ? [swatch(found.color), " "] : []), label);
};

const runsTable = () => {
  const rows = runs.map(({ label, run }) => {
    const { key = "" } = run.metric ? partsOf(run.metric) : {};
    return [labelled(label), element("span", { class: `state ${run.state}`, text: run.state }), run.step == null ? "–" : whole(run.step),
      run.epoch == null ? "–" : run.epoch.toFixed(1), duration(run.seconds), key, number(run.last), number(run.best)];
  });
  return table([{ title: "run", text: true }, { title: "state", text: true }, { title: "steps" }, { title: "epochs" },
    { title: "training time" }, { title: "metric", text: true }, { title: "last" }, { title: "best" }], rows);
};

// The last and the best value of each number in each run; the best of all has a star.
const numbersSection = () => {
  const names = [];
  for (const { curves } of runs) {
    for (const { name, place, better } of curves) {
      if (!names.some((each) => each.name === name)) names.push({ name, place, better });
    }
  }
  names.sort((a, b) => a.name.startsWith("runtime/") - b.name.startsWith("runtime/"));
  if (names.length === 0) return null;
  const rows = names.map(({ name, place, better }) => {
    const found = runs.map(({ curves }) => curves.find((curve) => curve.name === name || curve.also?.includes(name)));
    const bests = found.map((curve) => curve?.best?.value).filter((value) => typeof value === "number");
    const best = better && bests.length > 1 ? (better === "lower" ? Math.min(...bests) : Math.max(...bests)) : null;
    return [element("span", { title: name }, partsOf(name).key, element("small", { class: "quiet", text: ` ${place}` })), better ? `${better} is better` : "",
      ...found.flatMap((curve) => [number(curve?.last?.value),
        curve?.best && curve.best.value === best ? { text: `★ ${number(best)}`, class: "best" } : number(curve?.best?.value)])];
  });
  const columns = [{ title: "number", text: true }, { title: "", text: true },
    ...runs.flatMap(({ label }) => [{ title: labelled(label), note: "last" }, { title: " ", note: "best" }])];
  return element("section", { id: "numbers" }, element("h2", { text: "Numbers" }), table(columns, rows));
};

const configsSection = (configs) => {
  if (!configs) return null;
  const { labels, rows } = configs;
  const section = element("section", { id: "config" }, element("h2", { text: "Configs" }));
  section.append(rows.length === 0 ? element("p", { class: "empty", text: "The configs are the same." })
    : table([{ title: "key", text: true }, ...labels.map((label) => ({ title: labelled(label), text: true }))],
        rows.map(({ path, values }) => [path, ...values.map((value) => ({ text: value ?? "–", class: "wrap" }))])));
  return section;
};

const changesSection = (code) => (code
  ? element("section", { id: "code" }, element("h2", { text: "Code" }), element("pre", { tabindex: "0", text: code })) : null);

const page = {
  head: () => {
    readRuns();
    return [element("h1", { text: `${whole(runs.length)} runs` }), runsTable()];
  },
  written: () => data.written,
  parts: () => [
    { id: "curves", make: curvesSection, shows: [data.runs],
      from: [runs.flatMap((run) => run.curves.map((curve) => ({ ...curve, run, axis: run.axis }))), null, "No run has logged a number yet."] },
    { id: "pictures", make: framesSection, from: ["pictures", "Pictures", data.pictures, false] },
    { id: "numbers", make: numbersSection, from: [], shows: [data.runs] },
    { id: "config", make: configsSection, from: [data.configs], shows: [data.configs, runs.map(({ label }) => label)] },
    { id: "code", make: changesSection, from: [data.code] },
  ],
};
showParts(page);
