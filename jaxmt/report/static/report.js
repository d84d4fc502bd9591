// The report of an experiment: sections, their tables and figures.
"use strict";

jaxmt.report = async () => {
  const { h } = jaxmt;
  const data = await jaxmt.block("report");
  const root = document.getElementById("report");
  const makers = {
    overview: ["Overview", () => jaxmt.overview(data)],
    sentences: [
      "Sentences",
      async () => (jaxmt.browser = await jaxmt.sentences(data)),
    ],
    tuning: ["Tuning", () => jaxmt.tuning(data)],
    training: ["Training", () => jaxmt.training(data)],
    search: ["Search", () => jaxmt.search(data)],
    data: ["Data", () => jaxmt.dataSection(data)],
    config: ["Config", () => jaxmt.config(data)],
  };
  const sections = {};
  const tabs = {};
  // Sections that the page came with: their heading names them.
  [...root.querySelectorAll(":scope > section")].forEach((section, place) => {
    const name = `more-${place + 1}`;
    makers[name] = [section.querySelector("h2").textContent, null];
    sections[name] = section;
  });
  const open = async (name) => {
    for (const other of Object.keys(makers)) {
      sections[other].hidden = other !== name;
      tabs[other].setAttribute("aria-pressed", String(other === name));
    }
    await jaxmt.drawSection(sections[name], makers[name][1]);
    window.scrollTo(0, 0); // the address names the section: not a place in it
    if (name === "sentences") {
      const wanted = Number(location.hash.split("/")[1]);
      if (
        wanted >= 1 &&
        wanted <= data.size &&
        jaxmt.browser.chosen() !== wanted - 1
      )
        await jaxmt.browser.choose(wanted - 1);
      else if (jaxmt.browser.chosen() < 0 && jaxmt.browser.first() >= 0)
        await jaxmt.browser.choose(jaxmt.browser.first());
    }
  };
  const go = (name) => {
    location.hash = name;
  };
  const nav = document.querySelector("nav");
  for (const [name, [title]] of Object.entries(makers)) {
    tabs[name] = h(
      "button",
      {
        type: "button",
        id: `tab-${name}`,
        "aria-pressed": "false",
        click: () => go(name),
      },
      title,
    );
    sections[name] ??= h("section");
    jaxmt.fill(
      sections[name],
      { id: name, hidden: true, "aria-label": title },
      [],
    );
    root.append(sections[name]);
  }
  nav.append(...Object.values(tabs));
  document.querySelector("footer").prepend(
    h(
      "p",
      { class: "controls" },
      `Keys: 1 to ${Object.keys(makers).length} sections; j and k next and previous sentence; / filter; arrows in lists, trees and charts.`,
    ),
  );
  jaxmt.themeButton(document.querySelector("header"));
  const route = () => {
    const name = location.hash.slice(1).split("/")[0];
    return open(name in makers ? name : "overview");
  };
  window.addEventListener("hashchange", route);
  window.addEventListener("beforeprint", () => {
    for (const name of Object.keys(makers))
      if (name !== "sentences")
        jaxmt.drawSection(sections[name], makers[name][1]);
  });
  document.addEventListener("keydown", (event) => {
    if (
      event.target.closest?.("input, select, textarea") ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    )
      return;
    const names = Object.keys(makers);
    if (event.key >= "1" && event.key <= String(names.length))
      go(names[Number(event.key) - 1]);
    const step = { j: 1, k: -1 }[event.key];
    if (step && !sections.sentences.hidden) jaxmt.browser?.walk(step);
    if (event.key === "/" && !sections.sentences.hidden) {
      event.preventDefault();
      jaxmt.browser?.focusSearch();
    }
  });
  await route();
  document.body.dataset.ready = "";
};

// Fills a section when it is first opened.
jaxmt.drawSection = async (section, make) => {
  if (section.childElementCount) return;
  try {
    jaxmt.show(section, await make());
  } catch (error) {
    jaxmt.show(
      section,
      jaxmt.h(
        "p",
        { class: "bad" },
        `This part cannot be shown: ${error.message}. Reports need a browser of 2023 or newer.`,
      ),
    );
    throw error;
  }
};

jaxmt.themeButton = (header) => {
  const themes = ["auto", "light", "dark"];
  const button = jaxmt.h(
    "button",
    { type: "button", title: "light or dark" },
    "◐",
  );
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % themes.length;
    if (at) document.body.dataset.theme = themes[at];
    else delete document.body.dataset.theme;
    button.title = `light or dark: ${themes[at]}`;
  });
  header.append(button);
};

jaxmt.search = (data) => {
  const { h } = jaxmt;
  return [
    h("h2", {}, "Search errors"),
    h(
      "p",
      { class: "small faint" },
      "A search error is proven where a derivation is known that the system itself scores higher than the one it found: another system's, or the reference's. There may be more. launch/explain.py compares with a wider and with an exact search.",
    ),
    jaxmt.table(
      data.searchRows.map((row) => ({
        system: row.system,
        "proven search errors": row["proven search errors"],
        "test sentences": row["test sentences"],
      })),
    ),
    data.beams.length
      ? [
          h("h2", {}, "Search errors by beam"),
          h(
            "div",
            { class: "columns" },
            jaxmt.lines(data.beamSeries, {
              x: "beam",
              title:
                "sentences whose best found score is below that of the widest beam, %",
              legend: true,
              zero: true,
            }),
          ),
          jaxmt.table(data.beams),
        ]
      : null,
    data.fill.length
      ? [
          h("h2", {}, "Beam fill"),
          h(
            "div",
            { class: "columns" },
            jaxmt.lines(
              Object.fromEntries(
                data.fill.map((row) => [row.system, row.points]),
              ),
              {
                x: data.stacks ? "covered words" : "words of the span",
                title: data.stacks
                  ? "hypotheses per stack, mean"
                  : "hypotheses per cell, mean",
                legend: true,
                zero: true,
              },
            ),
          ),
          h(
            "p",
            { class: "small faint" },
            "A cell that is full may have lost something; one that is not has all it could build.",
          ),
        ]
      : null,
  ];
};

jaxmt.dataSection = (data) => {
  const { h } = jaxmt;
  return [
    h("h2", {}, "Corpus"),
    jaxmt.table(data.corpus),
    h(
      "div",
      { class: "columns" },
      jaxmt.histogram(data.lengths, {
        x: "source words",
        title: "length of sentences, % of the part",
        share: true,
      }),
      jaxmt.histogram(
        { test: data.unknownCounts },
        {
          x: "unknown words in a sentence",
          title: "source words of test sentences that training did not have",
        },
      ),
    ),
    h("h2", {}, "Reachability"),
    h("p", {}, data.reach),
    data.alignment.length
      ? [
          h("h2", {}, "Word alignment"),
          jaxmt.table(data.alignment),
          data.alignments.length ? jaxmt.alignmentExamples(data) : null,
        ]
      : null,
    h("h2", {}, "Language model"),
    jaxmt.table(data.lm),
    data.grammar.length
      ? [h("h2", {}, "Grammar"), jaxmt.table(data.grammar)]
      : null,
  ];
};

jaxmt.alignmentExamples = (data) => {
  const { h } = jaxmt;
  const box = h("div", {});
  const draw = (place) =>
    jaxmt.show(box, jaxmt.alignment(data.alignments[place]));
  draw(0);
  return [
    h("h3", {}, "Training pairs with their links"),
    jaxmt.choice(
      "pair",
      data.alignments.map((_, n) => String(n + 1)),
      0,
      draw,
    ),
    box,
  ];
};

jaxmt.config = (data) => {
  const { h } = jaxmt;
  return [
    h("h2", {}, "Metrics"),
    jaxmt.table(data.signatures),
    h("h2", {}, "All settings"),
    h("pre", {}, JSON.stringify(data.config, null, 1)),
    h("h2", {}, "Made by"),
    h("p", {}, data.made),
  ];
};
