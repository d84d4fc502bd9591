"""A finished run in Python, in cells for a notebook.

bash launch/quickstart.sh; python launch/example.py [WORKDIR]
"""

# %% A finished run is a translator.
import sys

import jaxmt

workdir = sys.argv[1] if len(sys.argv) > 1 else "runs/quickstart"
model = jaxmt.load(workdir, system="primary")

# %% Translate; a derivation draws itself in a notebook.
lines = ["他 昨天 买 了 书 。"]
references = [
  ["he bought the book yesterday .", "he bought a book yesterday ."]
]
out = jaxmt.decode(model, lines, beam=30)
print(out.text[0], out.scores[0], out.derivations[0], sep="\n")

# %% The best hundred translations, and a loss of them.
lists = jaxmt.kbest(out, k=100, references=references)
loss, weight = jaxmt.losses.risk(lists.scores, lists.costs, lists.mask)
print(f"{lists.mask.sum()} translations, risk {float(loss / weight):.4f}")

# %% All derivations of the search: how sure the model is of each edge.
forest = out.forests[0]
marginals = jaxmt.hypergraph.marginals(forest)
print(f"{len(marginals)} edges, {(marginals > 0.5).sum()} of them likely")

# %% Can the model say what people said?
forced = jaxmt.force(model, lines, [references[0][0]])
print(f"reference reached: {bool(forced.reached[0])} {forced.reasons[0]}")

# %% Other weights rescore the same forests; then scores of the output.
short = {**model.weights, "WordPenalty": model.weights["WordPenalty"] + 0.5}
print(jaxmt.kbest(out, k=1, weights=short).lines[0][0])
print(jaxmt.evaluate(out.text, references, tokenize="none"))
