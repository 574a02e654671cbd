// The parts of the page in their order.

const facts = () => {
  const run = data.run ?? {};
  const list = element("dl", { class: "facts" });
  const add = (name, value, more) => {
    if (value === null || value === undefined || value === "") return;
    const shown = element("dd", { text: value });
    if (more) shown.append(" ", element("small", { text: more }));
    list.append(element("div", { class: "fact" }, element("dt", { text: name }), shown));
  };
  add("training steps", run.step == null ? null : whole(run.step));
  add("epochs", run.epoch == null ? null : run.epoch.toFixed(1), run.num_epochs ? `of ${number(run.num_epochs)}` : "");
  add("training time", run.seconds == null ? null : duration(run.seconds));
  add("examples seen", run.samples ? whole(run.samples) : null);
  if (run.metric && run.last != null) {
    const { split, key } = partsOf(run.metric);
    add(`${split} ${key}`.trim(), number(run.last), run.best != null ? `best ${number(run.best)}` : "");
  }
  add("checkpoints", run.checkpoints ? whole(run.checkpoints) : null, run.best_checkpoint != null ? `best at ${whole(run.best_checkpoint)}` : "");
  return list;
};

const headOfRun = () => {
  const run = data.run ?? { name: document.title, state: "unknown" };
  const where = run.host && run.state === "running" ? ` on ${run.host}, process ${run.pid}` : "";
  return [element("div", { class: "title" }, element("h1", { text: run.name }),
    element("span", { class: `state ${run.state}`, text: run.state + where })),
  run.folder ? element("p", { class: "folder", text: run.folder }) : null, facts()].filter(Boolean);
};

const evaluationsSection = (evaluations) => {
  const { columns = [], rows = [], total = rows.length } = evaluations ?? {};
  for (const row of rows) row.values ??= {};
  const section = element("section", { id: "evaluations" }, element("h2", { text: "Evaluations" }));
  if (rows.length === 0) {
    section.append(element("p", { class: "empty", text: "The run has not been evaluated yet." }));
    return section;
  }
  const best = columns.map(({ name, better }) => {
    const values = rows.map((row) => row.values[name]).filter((value) => typeof value === "number");
    if (!better || values.length === 0) return null;
    const found = values.reduce((a, b) => (better === "lower" ? Math.min(a, b) : Math.max(a, b)));
    return rows.findIndex((row) => row.values[name] === found);
  });
  const starts = new Set(rows.map((row) => row.start));
  const head = [{ title: "step" }];
  if (starts.size > 1) head.push({ title: "start", text: true });
  for (const { name, place, better } of columns) {
    head.push({ title: partsOf(name).key, note: [place, better ? `${better} is better` : ""].filter(Boolean).join(", ") });
  }
  const cells = rows.map((row, place) => {
    const step = whole(row.step) + (row.complete ? "" : " (not complete)");
    const numbers = columns.map(({ name }, i) => {
      const value = row.values[name];
      return best[i] === place ? { text: `★ ${number(value)}`, class: "best" } : number(value);
    });
    return [step, ...(starts.size > 1 ? [row.start] : []), ...numbers];
  });
  section.append(table(head, cells));
  const notes = [];
  if (best.some((value) => value !== null)) notes.push("★ marks the first best value of a column.");
  if (total > rows.length) notes.push(`${whole(rows.length)} of ${whole(total)} evaluations are shown, evenly.`);
  if (notes.length) section.append(element("p", { class: "quiet", text: notes.join(" ") }));
  return section;
};

const worstSection = (given) => {
  const worst = { picture_keys: [], keys: [], ...given };
  if (!worst.examples?.length) return null;
  const section = element("section", { id: "worst" }, element("h2", { text: "Worst examples" }),
    element("p", { class: "quiet", text: `The examples with the greatest ${worst.loss} in ${worst.file}.` }));
  const columns = [...worst.picture_keys.map((title) => ({ title, text: true })), { title: "index", note: "in the dataset" },
    { title: worst.loss }, ...worst.keys.map((title, i) => ({ title, text: worst.examples.some(({ values }) => values?.[i]?.length > 30) }))];
  const rows = worst.examples.map((example) => [
    ...worst.picture_keys.map((key, i) => (example.pictures?.[i] ? picture(example.pictures[i], `${key} of example ${example.index}`) : null)),
    whole(example.index), number(example.loss),
    ...worst.keys.map((_, i) => { const text = example.values?.[i] ?? "–"; return { text, class: text.length > 30 ? "wrap" : "" }; })]);
  section.append(table(columns, rows));
  return section;
};

// YAML with its keys and comments set off.
const yaml = (text) => {
  const shown = element("pre", { tabindex: "0" });
  for (const line of text.split("\n")) {
    const found = /^(\s*(?:- )*)("[^"]*"|[^\s#:"'][^:]*?)(:)(?=\s|$)(.*)$/.exec(line);
    if (found) shown.append(found[1], element("span", { class: "key", text: found[2] }), found[3] + found[4] + "\n");
    else if (/^\s*#/.test(line)) shown.append(element("span", { class: "comment", text: line }), "\n");
    else shown.append(line + "\n");
  }
  return shown;
};

const configSection = (config) => {
  const { file = "", yaml: text = "", starts = [] } = config ?? {};
  const section = element("section", { id: "config" }, element("h2", { text: "Config" }));
  if (!text) {
    section.append(element("p", { class: "empty", text: "The run has no config that can be read." }));
    return section;
  }
  if (starts.length > 1) {
    section.append(element("p", { class: "quiet", text: `The run was started ${starts.length} times. What each start changed:` }));
    const rows = starts.flatMap(({ name, changes, code = [] }, i) => {
      const time = timeText(name.replace(/^[a-z]+_/, ""));
      if (i === 0) return [[time, { text: "(the first start)", class: "" }, "", ""]];
      if (changes.length === 0 && code.length === 0) return [[time, "nothing", "", ""]];
      const lines = (all, sign) => ({ text: all.filter((line) => line[0] === sign).map((line) => line.slice(1)).join("\n") || "–", class: "wrap code" });
      return [...changes.map(({ path, before, now }) => [time, path, { text: before ?? "–", class: "wrap" }, { text: now ?? "–", class: "wrap" }]),
        ...code.map(({ file, what, lines: all }) => [time, `code ${file}: ${what}`, lines(all, "-"), lines(all, "+")])];
    });
    section.append(table(["start", "key", "before", "now"].map((title) => ({ title, text: true })), rows));
  }
  section.append(element("details", { open: "" }, element("summary", { text: `configs/${file}` }), yaml(text)));
  return section;
};

const codeSection = (code) => {
  if (!code?.files?.length) return null;
  return element("section", { id: "code" }, element("h2", { text: "Code" }),
    ...code.files.map(({ name, text }) => element("details", {}, element("summary", { text: `${code.folder}/${name}` }),
      element("pre", { tabindex: "0", text }))));
};

const logSection = (log) => {
  if (!log?.length) return null;
  return element("section", { id: "log" }, element("h2", { text: "Log" }),
    element("details", {}, element("summary", { text: `the last ${log.length} lines of train/log.txt` }),
      element("pre", { tabindex: "0", text: log.join("\n") })));
};

const frames = (id, title, given, isText) => ({ id, make: framesSection, from: [id, title, given, isText] });

const page = {
  head: headOfRun,
  written: () => data.run?.written,
  parts: () => [
    { id: "curves", make: curvesSection, from: [data.curves ?? [], data.axis ?? {}, "The run has not logged a number yet."] },
    frames("pictures", "Pictures", data.pictures, false),
    frames("texts", "Texts", data.texts, true),
    { id: "evaluations", make: evaluationsSection, from: [data.evaluations] },
    frames("evaluation-pictures", "Pictures of evaluations", data.evaluation_pictures, false),
    frames("evaluation-texts", "Texts of evaluations", data.evaluation_texts, true),
    { id: "worst", make: worstSection, from: [data.worst] },
    { id: "config", make: configSection, from: [data.config] },
    { id: "code", make: codeSection, from: [data.code] },
    { id: "log", make: logSection, from: [data.log] },
  ],
};
showParts(page);
