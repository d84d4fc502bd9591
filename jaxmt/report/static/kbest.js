// K-best lists with a slider for every weight: the list re-ranks at once.
//
// A list is [[text, score, features, cost]], features [number, value].
"use strict";

// Scores of all candidates under other weights: what the features do not
// explain (sparse ones) stays as it was.
jaxmt.rescore = (list, weights, fresh) =>
  list.map(([, score, features]) =>
    features.reduce(
      (sum, [name, value]) => sum + value * (fresh[name] - weights[name]),
      score,
    ),
  );

jaxmt.kbest = (features, weights, list, reference = "") => {
  const { h } = jaxmt;
  const fresh = [...weights];
  const used = features
    .map((_, place) => place)
    .filter((place) =>
      list.some(([, , values]) => values.some(([name]) => name === place)),
    );
  const body = h("tbody", {});
  const note = h("p", { class: "small", "aria-live": "polite" });
  const costs = list.some((one) => one.length > 3);
  const draw = () => {
    const scores = jaxmt.rescore(list, weights, fresh);
    const order = list
      .map((_, place) => place)
      .sort((one, two) => scores[two] - scores[one] || one - two);
    jaxmt.show(
      body,
      order.map((place, rank) => {
        const [text, , , cost] = list[place];
        const moved = place - rank;
        return h(
          "tr",
          { "data-candidate": place },
          h("td", { class: "number" }, rank + 1),
          h(
            "td",
            {
              class: `number ${moved > 0 ? "good" : moved < 0 ? "bad" : "faint"}`,
            },
            moved ? (moved > 0 ? `↑${moved}` : `↓${-moved}`) : "=",
          ),
          h("td", { class: "number" }, scores[place].toFixed(3)),
          costs
            ? h("td", { class: "number" }, (100 * (1 - cost)).toFixed(1))
            : null,
          h(
            "td",
            { dir: "auto" },
            reference ? jaxmt.diff(text, reference) : text || "∅",
          ),
        );
      }),
    );
    note.textContent =
      order[0] === 0 || !list.length
        ? ""
        : `With these weights candidate ${order[0] + 1} of the list is the best.`;
  };
  const sliders = used.map((place) => {
    const reach = Math.max(1, 2 * Math.abs(weights[place]));
    const shown = h("output", { class: "number" }, weights[place].toFixed(3));
    const input = h("input", {
      type: "range",
      min: -reach,
      max: reach,
      step: reach / 200,
      value: weights[place],
      "aria-label": features[place],
      "data-feature": features[place],
    });
    input.addEventListener("input", () => {
      fresh[place] = Number(input.value);
      shown.textContent = fresh[place].toFixed(3);
      draw();
    });
    return {
      place,
      input,
      shown,
      label: h(
        "label",
        {},
        h(
          "span",
          { title: jaxmt.meanings[features[place]] ?? features[place] },
          features[place],
        ),
        input,
        shown,
      ),
    };
  });
  const reset = h("button", { type: "button" }, "the system's own weights");
  reset.addEventListener("click", () => {
    for (const { place, input, shown } of sliders) {
      fresh[place] = weights[place];
      input.value = weights[place];
      shown.textContent = weights[place].toFixed(3);
    }
    draw();
  });
  draw();
  const heads = [
    "rank",
    "moved",
    "score",
    ...(costs ? ["BLEU+1"] : []),
    "translation",
  ];
  return h(
    "div",
    { class: "kbest" },
    h(
      "div",
      { class: "sliders" },
      sliders.map((one) => one.label),
    ),
    h("p", { class: "controls" }, reset),
    note,
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map((name, n) =>
              h("th", { class: n + 1 < heads.length ? "number" : null }, name),
            ),
          ),
        ),
        body,
      ),
    ),
  );
};

jaxmt.components.kbest = (data) =>
  jaxmt.kbest(data.features, data.weights, data.list, data.reference ?? "");
