// The live page: type a sentence; see translation, list, derivation and chart.
"use strict";

jaxmt.live = async () => {
  const { h } = jaxmt;
  const data = await jaxmt.block("live");
  const root = document.getElementById("report");
  const text = h(
    "textarea",
    {
      id: "source",
      rows: 2,
      dir: "auto",
      "aria-label": "source sentence",
      style: { width: "100%" },
    },
    data.sample,
  );
  const button = h("button", { type: "submit", id: "translate" }, "Translate");
  const state = h("span", { class: "small faint", "aria-live": "polite" });
  const output = h("div", { id: "output" });
  let asked = 0;
  const ask = async () => {
    const number = ++asked;
    state.textContent = "translating…";
    try {
      const answer = await fetch("forest", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ text: text.value, size: 50 }),
      });
      const found = await answer.json();
      if (number !== asked) return;
      if (!answer.ok) throw new Error(found.error ?? answer.statusText);
      state.textContent = "";
      jaxmt.show(output, jaxmt.liveSentence(data, found));
    } catch (error) {
      if (number === asked)
        jaxmt.show(state, h("span", { class: "bad" }, error.message));
    }
  };
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      ask();
    }
  });
  const form = h(
    "form",
    {
      submit: (event) => {
        event.preventDefault();
        ask();
      },
    },
    text,
    h(
      "p",
      { class: "row" },
      button,
      state,
      h(
        "span",
        { class: "small faint" },
        `system ${data.system}; Enter translates`,
      ),
    ),
  );
  root.append(form, output);
  await ask();
  document.body.dataset.ready = "";
};

jaxmt.liveSentence = (data, found) => {
  const { h } = jaxmt;
  const context = {
    source: found.source,
    systems: [data.system],
    features: found.features,
    weights: [found.weights],
    rules: found.rules,
  };
  if (!found.derivation)
    return h("p", { class: "faint" }, "Nothing to translate.");
  const followed = [{ name: "this translation", parts: found.parts }];
  return [
    h(
      "p",
      { id: "translation", dir: "auto", style: { fontSize: "1.25rem" } },
      found.text || "(empty)",
    ),
    h("h2", {}, "The best translations"),
    h(
      "p",
      { class: "small faint" },
      "Move a weight and the list is ranked anew.",
    ),
    jaxmt.kbest(found.features, found.weights, found.kbest),
    h("h2", {}, "Derivation"),
    jaxmt.derivation(context, found.derivation, { ranks: found.parts }),
    h("h2", {}, "Word links"),
    jaxmt.alignment({
      source: found.source,
      target: jaxmt.read(context, found.derivation).words,
      layers: [["links", found.derivation.w]],
    }),
    found.lattice
      ? [h("h2", {}, "Phrase lattice"), jaxmt.lattice(found.lattice)]
      : null,
    found.chart
      ? [
          h("h2", {}, found.chart.stacks ? "Stacks" : "Chart"),
          jaxmt.chart(found.source, found.chart, followed),
        ]
      : null,
    h(
      "p",
      { class: "small faint" },
      `${found.forest.nodes.length.toLocaleString("en")} nodes and ${found.forest.edges.length.toLocaleString("en")} edges in the forest; POST /forest has them.`,
    ),
  ];
};
