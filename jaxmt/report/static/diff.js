// Differences of lines, word by word.
"use strict";

// Which words of two lists their longest common subsequence has: two arrays.
jaxmt.common = (one, two) => {
  const width = two.length + 1;
  const best = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--)
    for (let j = two.length - 1; j >= 0; j--)
      best[i * width + j] =
        one[i] === two[j]
          ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  const shared = [one.map(() => false), two.map(() => false)];
  let [i, j] = [0, 0];
  while (i < one.length && j < two.length) {
    if (one[i] === two[j]) shared[0][i++] = shared[1][j++] = true;
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return shared;
};

// The number of the reference that shares most words with a line, in order.
jaxmt.nearest = (line, references) => {
  const words = jaxmt.words(line);
  const shares = references.map((reference) => {
    const own = jaxmt.words(reference);
    const shared = jaxmt.common(words, own)[0].filter(Boolean).length;
    return (2 * shared) / Math.max(words.length + own.length, 1);
  });
  return Math.max(shares.indexOf(Math.max(...shares)), 0);
};

// A line: words that a reference has in this order and others, and on request
// those marked that another line does not have.
jaxmt.diff = (line, reference, { other } = {}) => {
  const { h } = jaxmt;
  const words = jaxmt.words(line);
  if (!words.length) return h("span", { class: "faint" }, "(empty)");
  const good = jaxmt.common(words, jaxmt.words(reference))[0];
  const same =
    other === undefined ? null : jaxmt.common(words, jaxmt.words(other))[0];
  return h(
    "bdi",
    {},
    words.flatMap((word, place) => [
      place ? " " : "",
      h(
        "span",
        {
          class: `${good[place] ? "word-same" : "word-extra"}${same && !same[place] ? " word-changed" : ""}`,
        },
        word,
      ),
    ]),
  );
};
