// A page about datasets: of each its keys, what is wrong, and examples to browse.

const kindOf = (key) => (key.counts.length ? "counted" : "numbers");

// Bars of how often each value occurs.
const countBars = (key) => {
  const most = Math.max(...key.counts.map(([, times]) => times));
  const bars = element("div", { class: "bars" });
  for (const [value, times] of key.counts) {
    bars.append(element("div", { class: "count", title: `${value}: ${whole(times)}` },
      element("span", { class: "name", text: value }),
      element("span", { class: "length", style: `width: ${((100 * times) / most).toFixed(1)}%` }),
      element("span", { class: "times", text: whole(times) })));
  }
  return element("figure", { class: "card" }, element("h3", { text: key.key }), bars);
};

const keysTable = (dataset) => {
  const good = dataset.read - dataset.bad_count;
  const note = (key) => {
    const notes = [];
    if (key.examples < good) notes.push(`only in ${whole(key.examples)} of ${whole(good)} examples`);
    if (key.nans) notes.push(`${whole(key.nans)} NaN`);
    if (key.infinities) notes.push(`${whole(key.infinities)} infinite`);
    if (key.counts.length) notes.push(`${whole(key.counts.length)} values`);
    return notes.join("; ");
  };
  return table(
    [{ title: "key", text: true }, { title: "type", text: true }, { title: "shape", text: true }, { title: "min" },
      { title: "max" }, { title: "mean" }, { title: "deviation" }, { title: "", text: true }],
    dataset.keys.map((key) => [key.key, key.type, key.shape, number(key.min), number(key.max), number(key.mean),
      number(key.deviation), note(key)]));
};

const problems = (dataset) => {
  const found = [];
  if (dataset.bad_count) {
    found.push(element("li", {}, element("strong", { text: `${whole(dataset.bad_count)} bad: ` }), dataset.bad_indices));
    for (const { index, problem } of dataset.bad) found.push(element("li", { text: `example ${index}: ${problem}` }));
  }
  if (dataset.with_nan) found.push(element("li", { text: `NaN or infinity in the examples ${dataset.with_nan}` }));
  return found.length ? element("div", { class: "notes", role: "note" }, element("ul", {}, ...found)) : null;
};

const exampleCard = (example) => {
  const card = element("article", { class: "card example" }, element("h3", { text: `example ${whole(example.index)}` }));
  const pictures = element("div", { class: "pictures" });
  for (const { key, data: bytes } of example.pictures) {
    pictures.append(element("figure", {}, picture(bytes, `${key} of example ${example.index}`),
      element("figcaption", { text: key })));
  }
  if (example.pictures.length) card.append(pictures);
  const list = element("dl");
  for (const { key, value } of example.values) list.append(element("dt", { text: key }), element("dd", { text: value }));
  card.append(list);
  return card;
};

const linesOf = (example) => [`example ${example.index}`, ...example.values.map(({ key, value }) => `${key} ${value}`)]
  .map((line) => line.toLowerCase());

const examples = (dataset) => {
  const section = element("div");
  const hasPictures = dataset.shown.some((example) => example.pictures.length);
  const grid = element("div", { class: hasPictures ? "examples" : "examples plain" });
  const cards = dataset.shown.map((example) => ({ lines: linesOf(example), card: exampleCard(example) }));
  grid.append(...cards.map(({ card }) => card));
  const shown = element("output", { text: `${whole(cards.length)} of ${whole(dataset.size)} examples` });
  const search = element("input", {
    type: "search", placeholder: "class 3", "aria-label": "show only examples with this text",
    oninput: (event) => {
      const words = event.target.value.toLowerCase().trim();
      // "class 3" is not "class 30" where there is a class 3.
      const isWhole = cards.some(({ lines }) => lines.includes(words));
      const fits = (lines) => (isWhole ? lines.includes(words) : lines.some((line) => line.includes(words)));
      let count = 0;
      for (const { lines, card } of cards) {
        card.hidden = words !== "" && !fits(lines);
        if (!card.hidden) ++count;
      }
      shown.value = `${whole(count)} of ${whole(dataset.size)} examples`;
    },
  });
  const size = element("input", {
    type: "range", min: "60", max: "400", value: "140", "aria-label": "size of the pictures",
    oninput: (event) => grid.style.setProperty("--side", `${event.target.value}px`),
  });
  section.append(element("div", { class: "bar" }, element("label", {}, "only with ", search), element("label", {}, "size ", size), shown), grid);
  return section;
};

const datasetSection = (dataset, i) => {
  const short = (seconds) => (seconds < 1e-3 ? `${number(seconds * 1e6)} µs` : seconds < 1 ? `${number(seconds * 1e3)} ms` : duration(seconds));
  const read = dataset.read === dataset.size ? "all" : whole(dataset.read);
  const section = element("section", { id: `dataset${i}` }, element("h2", { text: dataset.title }),
    element("p", { class: "quiet", text: `${whole(dataset.size)} examples, ${read} read in ${short(dataset.seconds)}; ${short(dataset.example_seconds)} an example in one thread` }),
    problems(dataset), keysTable(dataset));
  const counted = dataset.keys.filter((key) => kindOf(key) === "counted" && key.counts.length > 1);
  if (counted.length) {
    section.append(element("details", { open: counted.some((key) => key.counts.length <= 20) },
      element("summary", { text: "How often each value occurs" }), element("div", { class: "charts" }, ...counted.map(countBars))));
  }
  if (dataset.shown.length) section.append(examples(dataset));
  return section;
};

const sections = data.datasets.map(datasetSection);
document.getElementById("head").append(element("div", { class: "title" }, element("h1", { text: data.title })),
  element("nav", { "aria-label": "datasets" },
    ...data.datasets.map((dataset, i) => element("a", { href: `#dataset${i}`, text: dataset.title }))));
document.getElementById("main").append(...sections);
