// Derivations: the tree, spans of source and target, word links, and what each
// rule adds to the score.
//
// A context says what numbers stand for:
//   {source: [word], systems: [name], features: [name], weights: [[w]], rules}
// A rule is {l, s, t, a, k, c, v}: left-hand side, sides with numbers for the
// sites, labels of the sites, kind, count, own features by system. A derivation
// is {n: [[rule, begin, end, parent, added]], g, z, w}: nodes in preorder, what
// the goal adds, scores by system, word links. Features are [number, value].
"use strict";

// Reads a derivation: target words, where each node's words stand, its
// children, and which words are its own.
jaxmt.read = (context, view) => {
  const nodes = view.n.map(([number, begin, end, parent, added]) => ({
    number,
    rule: context.rules[number],
    begin,
    end,
    parent,
    added,
    children: [],
    own: [],
  }));
  const roots = [];
  nodes.forEach((node, place) => {
    if (node.parent >= 0) nodes[node.parent].children.push(place);
    else roots.push(place);
  });
  const words = [];
  for (const root of roots) {
    // Not recursive: glue makes derivations as deep as sentences are long.
    const stack = [[root, 0]];
    nodes[root].first = words.length;
    while (stack.length) {
      const top = stack[stack.length - 1];
      const node = nodes[top[0]];
      if (top[1] === node.rule.t.length) {
        node.last = words.length;
        stack.pop();
        continue;
      }
      const symbol = node.rule.t[top[1]++];
      if (typeof symbol === "number") {
        const child = node.children[symbol];
        nodes[child].first = words.length;
        stack.push([child, 0]);
      } else {
        node.own.push(words.length);
        words.push(symbol);
      }
    }
  }
  return { nodes, roots, words };
};

// What a node adds under a system, by feature: Map of number -> [value, product].
jaxmt.contributions = (context, node, system) => {
  const out = new Map();
  const weights = context.weights[system];
  for (const [name, value] of [...(node.rule.v[system] ?? []), ...node.added]) {
    const before = out.get(name)?.[0] ?? 0;
    out.set(name, [before + value, (before + value) * weights[name]]);
  }
  return out;
};

// Feature totals of a whole derivation under a system: an array of values.
jaxmt.totals = (context, view, system) => {
  const out = new Array(context.features.length).fill(0);
  for (const [rule, , , , added] of view.n) {
    for (const [name, value] of context.rules[rule].v[system] ?? [])
      out[name] += value;
    for (const [name, value] of added) out[name] += value;
  }
  for (const [name, value] of view.g) out[name] += value;
  return out;
};

jaxmt.product = (values, weights) =>
  values.reduce((sum, value, place) => sum + value * weights[place], 0);

// A rule as text with marked sites.
jaxmt.ruleText = (rule) => {
  const site = (number) =>
    jaxmt.h("span", { class: "site" }, `${rule.a?.[number] ?? "X"}${number}`);
  const side = (symbols) =>
    symbols.flatMap((one, place) => [
      place ? " " : "",
      typeof one === "number" ? site(one) : one,
    ]);
  return jaxmt.h(
    "span",
    { class: "rule" },
    jaxmt.h("bdi", {}, side(rule.s)),
    " → ",
    jaxmt.h("bdi", {}, rule.t.length ? side(rule.t) : "∅"),
  );
};

jaxmt.rulePlain = (rule) => {
  const side = (symbols) =>
    symbols
      .map((one) =>
        typeof one === "number" ? `${rule.a?.[one] ?? "X"}${one}` : one,
      )
      .join(" ");
  return `${side(rule.s)} → ${side(rule.t) || "∅"}`;
};

// Features of a node or a derivation as a table with bars.
jaxmt.breakdown = (context, found, system) => {
  const rows = [...found]
    .filter(([, [value]]) => value)
    .sort((one, two) => Math.abs(two[1][1]) - Math.abs(one[1][1]));
  const most = Math.max(
    ...rows.map(([, [, product]]) => Math.abs(product)),
    1e-9,
  );
  return jaxmt.table(
    rows.map(([name, [value, product]]) => ({
      feature: jaxmt.feature(context.features[name]),
      value,
      weight: context.weights[system][name],
      adds: product,
      "": jaxmt.h("span", {
        class: "bar",
        style: {
          width: `${(Math.abs(product) / most) * 6}rem`,
          background: product < 0 ? "var(--bad)" : "var(--good)",
        },
      }),
    })),
    { digits: 4 },
  );
};

// Source over target, with lines for word links.
jaxmt.strip = (source, target, links) => {
  const { h, svg } = jaxmt;
  const word = (text, side, place) =>
    h("span", { class: "w", [`data-${side}`]: place }, text);
  const above = h(
    "div",
    { class: "words" },
    source.map((text, place) => word(text, "s", place)),
  );
  const below = h(
    "div",
    { class: "words" },
    target.length
      ? target.map((text, place) => word(text, "t", place))
      : h("span", { class: "faint" }, "(empty translation)"),
  );
  const lines = links.map(([one, two]) =>
    svg("line", { "data-s": one, "data-t": two }),
  );
  const drawing = svg("svg", { height: 44, "aria-hidden": "true" }, lines);
  const strip = h(
    "div",
    {
      class: "strip",
      dir: "auto",
      tabindex: 0,
      role: "group",
      "aria-label": "source and target words with links",
    },
    above,
    drawing,
    below,
  );
  const place = () => {
    drawing.setAttribute(
      "width",
      Math.max(above.offsetWidth, below.offsetWidth, 1),
    );
    const left = drawing.getBoundingClientRect().left;
    const middle = (element) => {
      const box = element.getBoundingClientRect();
      return box.left + box.width / 2 - left;
    };
    lines.forEach((line) => {
      const [one, two] = [
        above.children[line.dataset.s],
        below.children[line.dataset.t],
      ];
      if (!one || !two) return;
      line.setAttribute("x1", middle(one));
      line.setAttribute("x2", middle(two));
      line.setAttribute("y1", 2);
      line.setAttribute("y2", 42);
    });
  };
  if (window.ResizeObserver) new ResizeObserver(place).observe(strip);
  return strip;
};

// Draws a derivation. Options: system (which weights to show first), ranks
// (parts as `PartView` has them, in the order of the nodes), shared (numbers of
// rules that another derivation uses, too: the others are marked), onSpan(begin,
// end) when a span is pointed at.
jaxmt.derivation = (context, view, options = {}) => {
  const { h } = jaxmt;
  if (!view)
    return h(
      "p",
      { class: "faint" },
      "no derivation: the sentence is empty, or nothing could be derived",
    );
  const system = options.system ?? 0;
  const { nodes, roots, words } = jaxmt.read(context, view);
  const strip = jaxmt.strip(context.source, words, view.w);
  const items = nodes.map(
    (node, place) =>
      node && jaxmt.derivationNode(context, nodes, place, system, options),
  );
  nodes.forEach((node, place) => {
    if (!node.children.length) return;
    items[place].append(
      h(
        "ul",
        { role: "group" },
        node.children.map((child) => items[child]),
      ),
    );
  });
  const depth = (place) => {
    let deep = 0;
    for (let at = place; at >= 0; at = nodes[at].parent) deep++;
    return deep;
  };
  const deep = nodes.some((_, place) => place % 7 === 0 && depth(place) > 16);
  const tree = h(
    "div",
    { class: deep ? "tree deep" : "tree" },
    h(
      "ul",
      { role: "tree", "aria-label": "derivation" },
      roots.map((root) => items[root]),
    ),
  );
  const box = h(
    "div",
    { class: "derivation" },
    h("div", { class: "scroll" }, strip),
    tree,
  );
  const light = (spans) => jaxmt.highlight(box, nodes, items, spans);
  box.highlightSpan = (begin, end) => light({ begin, end });
  items.forEach((item, place) => {
    item.querySelector(".head").addEventListener("mouseover", (event) => {
      event.stopPropagation();
      light({ place });
      options.onSpan?.(nodes[place].begin, nodes[place].end, box);
    });
    item
      .querySelector(".head")
      .addEventListener("focusin", () => light({ place }));
  });
  strip.addEventListener("mouseover", (event) => {
    const word = event.target.closest?.(".w");
    if (!word) return;
    const side = word.dataset.s !== undefined ? "s" : "t";
    light({ [side]: Number(word.dataset[side]) });
  });
  box.addEventListener("mouseleave", () => {
    light({});
    options.onSpan?.(-1, -1, box);
  });
  box.addEventListener("keydown", (event) => jaxmt.moveInTree(event, box));
  return box;
};

// One line of the tree: fold button, label, rule, what it adds.
jaxmt.derivationNode = (context, nodes, place, system, options) => {
  const { h } = jaxmt;
  const node = nodes[place];
  const sum = [...jaxmt.contributions(context, node, system).values()].reduce(
    (total, [, product]) => total + product,
    0,
  );
  const part = options.ranks?.[place];
  const detail = h("div", { hidden: true });
  const open = h(
    "button",
    {
      type: "button",
      class: "open number",
      "aria-expanded": "false",
      title: "what it adds to the score; click for the features",
    },
    jaxmt.number(sum, 2),
  );
  open.addEventListener("click", () => {
    detail.hidden = !detail.hidden;
    open.setAttribute("aria-expanded", String(!detail.hidden));
    if (!detail.hidden)
      jaxmt.show(
        detail,
        h(
          "p",
          { class: "small faint" },
          `${node.rule.k} rule${node.rule.c ? `, seen ${jaxmt.number(node.rule.c)} times in training` : ""}; weights of ${context.systems[system]}`,
        ),
        jaxmt.breakdown(
          context,
          jaxmt.contributions(context, node, system),
          system,
        ),
      );
  });
  const fold = h(
    "button",
    { type: "button", class: "fold", "aria-label": "fold", title: "fold" },
    node.children.length ? "▾" : "·",
  );
  const item = h(
    "li",
    {
      class:
        options.shared && !options.shared.has(node.number)
          ? "node other"
          : "node",
      role: "treeitem",
      "aria-expanded": node.children.length ? "true" : null,
      "data-span": `${node.begin}-${node.end}`,
      "data-place": place,
    },
    h(
      "div",
      { class: "head" },
      fold,
      h("span", { class: "label" }, `${node.rule.l} ${node.begin}–${node.end}`),
      jaxmt.ruleText(node.rule),
      part ? jaxmt.rankText(part) : null,
      context.features.length ? open : null,
    ),
    detail,
  );
  fold.addEventListener("click", () => {
    const below = item.querySelector(":scope > ul");
    if (!below) return;
    below.hidden = !below.hidden;
    fold.textContent = below.hidden ? "▸" : "▾";
    item.setAttribute("aria-expanded", String(!below.hidden));
  });
  return item;
};

// Rank of a part in a beam, in words.
jaxmt.rankText = ([, , , rank, competing, gap, kept]) => {
  if (!competing) return jaxmt.h("span", { class: "lost" }, "no such cell");
  const text =
    rank > competing
      ? `beyond the beam (${competing})`
      : !kept && gap < 0
        ? `better than all ${competing}, but its parts were`
        : `rank ${rank} of ${competing}`;
  return jaxmt.h(
    "span",
    {
      class: kept ? "label" : "lost",
      title: "place among the hypotheses of its cell",
    },
    kept ? text : `${text}${gap < 0 ? " lost" : ", lost"}`,
  );
};

// Marks the words and nodes that belong to a node, a span or a word.
jaxmt.highlight = (box, nodes, items, spans) => {
  const strip = box.querySelector(".strip");
  const isSource = new Set();
  const isTarget = new Set();
  const isNode = new Set();
  const add = (node) => {
    for (let place = node.begin; place < node.end; place++) isSource.add(place);
    for (let place = node.first; place < node.last; place++)
      isTarget.add(place);
  };
  if (spans.place !== undefined) {
    add(nodes[spans.place]);
    isNode.add(spans.place);
  } else if (spans.begin >= 0) {
    nodes.forEach((node, place) => {
      if (node.begin !== spans.begin || node.end !== spans.end) return;
      add(node);
      isNode.add(place);
    });
    for (let place = spans.begin; place < spans.end; place++)
      isSource.add(place);
  }
  const links = [...strip.querySelectorAll("line")];
  if (spans.s !== undefined) isSource.add(spans.s);
  if (spans.t !== undefined) isTarget.add(spans.t);
  for (const line of links) {
    const [one, two] = [Number(line.dataset.s), Number(line.dataset.t)];
    if (spans.s === one) isTarget.add(two);
    if (spans.t === two) isSource.add(one);
  }
  if (spans.t !== undefined)
    nodes.forEach(
      (node, place) => node.own.includes(spans.t) && isNode.add(place),
    );
  if (spans.s !== undefined) {
    let best = -1;
    nodes.forEach((node, place) => {
      if (node.begin <= spans.s && spans.s < node.end) best = place;
    });
    if (best >= 0) isNode.add(best);
  }
  for (const word of strip.querySelectorAll(".w")) {
    const hot =
      word.dataset.s !== undefined
        ? isSource.has(Number(word.dataset.s))
        : isTarget.has(Number(word.dataset.t));
    word.classList.toggle("hot", hot);
  }
  for (const line of links)
    line.classList.toggle(
      "hot",
      isSource.has(Number(line.dataset.s)) &&
        isTarget.has(Number(line.dataset.t)),
    );
  items.forEach((item, place) =>
    item.classList.toggle("hot", isNode.has(place)),
  );
};

// Arrow keys walk through the buttons of a tree.
jaxmt.moveInTree = (event, box) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const buttons = [...box.querySelectorAll(".node .fold")].filter(
    (one) => one.offsetParent !== null,
  );
  const at = buttons.indexOf(document.activeElement);
  if (at < 0) return;
  event.preventDefault();
  buttons[Math.max(0, Math.min(buttons.length - 1, at + step))].focus();
};

jaxmt.components.derivation = (data) =>
  jaxmt.derivation(data.context, data.derivation);
