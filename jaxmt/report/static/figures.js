// Figures: lines, bars and histograms as drawings that scale and print.
"use strict";

// Round numbers that span a range.
jaxmt.ticks = (low, high, number = 5) => {
  if (!(high > low)) return [low];
  const raw = (high - low) / number;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((one) => one * power >= raw) * power;
  const out = [];
  for (
    let value = Math.ceil(low / step) * step;
    value <= high + step / 1e6;
    value += step
  )
    out.push(Number(value.toPrecision(10)));
  return out;
};

jaxmt.legend = (names, first = 0) =>
  jaxmt.h(
    "div",
    { class: "legend" },
    names.map((name, place) =>
      jaxmt.h(
        "span",
        {},
        jaxmt.h("i", { style: { background: jaxmt.colour(place + first) } }),
        name,
      ),
    ),
  );

// Lines through points: series = {name: [[x, y], ...]}; with `zero` the axis
// begins at 0.
jaxmt.lines = (series, options = {}) => {
  const { svg } = jaxmt;
  const [width, height, left, bottom] = [
    options.width ?? 460,
    options.height ?? 230,
    52,
    36,
  ];
  const names = Object.keys(series).filter((name) =>
    series[name].some(([, y]) => y !== null && y !== undefined),
  );
  const points = names.flatMap((name) =>
    series[name].filter(([, y]) => y !== null && y !== undefined),
  );
  if (!points.length)
    return jaxmt.h("p", { class: "faint" }, "nothing to draw");
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  let [x0, x1, y0, y1] = [
    Math.min(...xs),
    Math.max(...xs),
    Math.min(...ys),
    Math.max(...ys),
  ];
  if (options.zero) y0 = Math.min(y0, 0);
  if (y0 === y1) [y0, y1] = [y0 - 1, y1 + 1];
  if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
  const px = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - 14);
  const py = (y) => 10 + (1 - (y - y0) / (y1 - y0)) * (height - bottom - 10);
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    role: "img",
    "aria-label": options.title ?? "",
  });
  for (const y of jaxmt.ticks(y0, y1)) {
    drawing.append(
      svg("path", { class: "axis", d: `M${left} ${py(y)}H${width - 14}` }),
      svg(
        "text",
        { x: left - 6, y: py(y) + 4, "text-anchor": "end", class: "faint" },
        jaxmt.number(y, 4),
      ),
    );
  }
  const whole = xs.every(Number.isInteger);
  for (const x of jaxmt.ticks(x0, x1)) {
    if (whole && !Number.isInteger(x)) continue;
    drawing.append(
      svg(
        "text",
        {
          x: px(x),
          y: height - bottom + 18,
          "text-anchor": "middle",
          class: "faint",
        },
        jaxmt.number(x, 4),
      ),
    );
  }
  drawing.append(
    svg(
      "text",
      { x: (left + width) / 2, y: height - 3, "text-anchor": "middle" },
      options.x ?? "",
    ),
  );
  names.forEach((name, place) => {
    const own = series[name].filter(([, y]) => y !== null && y !== undefined);
    const path = own
      .map(([x, y], n) => `${n ? "L" : "M"}${px(x)} ${py(y)}`)
      .join("");
    drawing.append(
      svg("path", {
        d: path,
        fill: "none",
        stroke: jaxmt.colour(place),
        "stroke-width": 2,
      }),
    );
    for (const [x, y] of own)
      drawing.append(
        svg(
          "circle",
          { cx: px(x), cy: py(y), r: 3, fill: jaxmt.colour(place) },
          svg(
            "title",
            {},
            `${name}: ${options.x ?? "x"} ${jaxmt.number(x)}, ${jaxmt.number(y, 4)}`,
          ),
        ),
      );
  });
  return jaxmt.h(
    "figure",
    { style: { margin: 0 } },
    options.title
      ? jaxmt.h("figcaption", { class: "small" }, options.title)
      : null,
    drawing,
    names.length > 1 || options.legend ? jaxmt.legend(names) : null,
  );
};

jaxmt.components.lines = ({ series, ...options }) =>
  jaxmt.lines(series, options);
jaxmt.components.bars = ({ rows, ...options }) => jaxmt.bars(rows, options);

// Horizontal bars: rows = [{name, value, margin}]; margins are drawn as lines.
jaxmt.bars = (rows, options = {}) => {
  const { svg } = jaxmt;
  const [width, step, left] = [options.width ?? 460, 24, options.left ?? 150];
  const high = Math.max(...rows.map((row) => row.value + (row.margin ?? 0)), 0);
  const low = Math.min(...rows.map((row) => row.value - (row.margin ?? 0)), 0);
  const px = (x) =>
    left + ((x - low) / (high - low || 1)) * (width - left - 60);
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${rows.length * step + 6}`,
    width,
    role: "img",
    "aria-label": options.title ?? "",
  });
  rows.forEach((row, place) => {
    const y = place * step + 4;
    const [one, two] = [px(Math.min(0, row.value)), px(Math.max(0, row.value))];
    drawing.append(
      svg(
        "text",
        { x: left - 6, y: y + 13, "text-anchor": "end" },
        row.name.length > 24 ? `${row.name.slice(0, 23)}…` : row.name,
        svg("title", {}, row.name),
      ),
      svg(
        "rect",
        {
          x: one,
          y,
          width: Math.max(two - one, 1),
          height: step - 8,
          fill: row.colour ?? jaxmt.colour(place),
        },
        svg(
          "title",
          {},
          `${row.name}: ${jaxmt.number(row.value, 4)}${row.margin ? ` ± ${jaxmt.number(row.margin)}` : ""}`,
        ),
      ),
      svg(
        "text",
        { x: px(Math.max(0, row.value) + (row.margin ?? 0)) + 5, y: y + 13 },
        jaxmt.number(row.value, options.digits ?? 2),
      ),
    );
    if (row.margin)
      drawing.append(
        svg("path", {
          d: `M${px(row.value - row.margin)} ${y + 8}H${px(row.value + row.margin)}`,
          stroke: "currentColor",
          "stroke-width": 1.5,
        }),
      );
  });
  return jaxmt.h(
    "figure",
    { style: { margin: 0 } },
    options.title
      ? jaxmt.h("figcaption", { class: "small" }, options.title)
      : null,
    drawing,
  );
};

// Counts in bins, several samples side by side: samples = {name: [value, ...]}.
jaxmt.histogram = (samples, options = {}) => {
  const every = Object.values(samples).flat();
  if (!every.length)
    return jaxmt.h("p", { class: "faint" }, "nothing to count");
  const [low, high] = [Math.min(...every), Math.max(...every)];
  const whole = every.every(Number.isInteger);
  const step = Math.max(
    (high - low + (whole ? 1 : 0)) / (options.bins ?? 16),
    whole ? 1 : 1e-9,
  );
  const size = whole ? Math.ceil(step) : step;
  const series = {};
  for (const [name, values] of Object.entries(samples)) {
    const counts = new Map();
    for (let bin = 0; low + bin * size <= high; bin++) counts.set(bin, 0);
    for (const value of values) {
      const bin = Math.min(Math.floor((value - low) / size), counts.size - 1);
      counts.set(bin, (counts.get(bin) ?? 0) + 1);
    }
    const total = options.share ? values.length || 1 : 1;
    series[name] = [...counts].map(([bin, count]) => [
      low + bin * size,
      ((options.share ? 100 : 1) * count) / total,
    ]);
  }
  return jaxmt.lines(series, { legend: true, zero: true, ...options });
};
