"""The outer loop with a decoder that only re-ranks a fixed set of strings."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.tune import loop, methods, pool
from tests.tune import small_pool

START = {"hint": 0.02, "length": 0.1, "noise": 0.3}


@pytest.fixture(scope="module")
def world():
  """All strings there are, and their references."""
  made = small_pool.make(0, sentences=30, width=40)
  refs = small_pool.references(np.random.default_rng(0), 30)
  return made, refs


def decoder(made, *, size=5, log=None):
  """Returns the `size` best candidates of each sentence asked for."""

  def decode(weights, sentences):
    if log is not None:
      log.append(len(sentences))
    vector = candidate_lists.to_vector(weights, made.names)
    scores = pool.scores(made, vector)
    chosen, place = [], []
    for number, sentence in enumerate(sentences):
      low, high = made.offsets[sentence], made.offsets[sentence + 1]
      order = np.argsort(-scores[low:high], kind="stable")[:size]
      chosen += (low + order).tolist()
      place += [number] * len(order)
    rows = np.array(chosen, np.int64)
    return candidate_lists.from_rows(
      sentence=np.array(place, np.int64),
      sentences=len(sentences),
      lines=[made.lines[row] for row in chosen],
      features=sparse.select(made.features, rows),
      names=made.names,
    )

  return decode


def quick(name, **changes):
  base = {"mert": {"restarts": "2"}, "kbmira": {"passes": "5", "cap": "0.1"}}
  return methods.configure(methods.find(name), base.get(name, {}) | changes)


@pytest.mark.parametrize("name", ["mert", "kbmira", "rampion", "arow"])
def test_loop_improves_what_the_decoder_writes(world, name):
  made, refs = world
  config = loop.LoopConfig(rounds=5)
  state = loop.run(
    decoder(made), refs, quick(name), loop.begin(START), config, 1
  )
  scores = [row["score"] for row in state.history]
  assert state.best_score == max(scores) > scores[0] + 0.02
  # The best weights give the best score when decoded again.
  again = loop.run(
    decoder(made),
    refs,
    quick(name),
    loop.begin(state.best_weights),
    dataclasses.replace(config, rounds=0),
    1,
  )
  assert again.history[0]["score"] == pytest.approx(state.best_score)
  sizes = [row["pool"] for row in state.history]
  assert sizes == sorted(sizes)
  assert len(state.history) <= 6


def test_it_stops_when_nothing_is_new(world):
  made, refs = world
  state = loop.run(
    decoder(made, size=1000),
    refs,
    quick("kbmira"),
    loop.begin(START),
    loop.LoopConfig(rounds=50),
    0,
  )
  assert len(state.history) == 2
  assert state.history[-1]["new"] == 0


def test_patience(world):
  made, refs = world
  state = loop.run(
    decoder(made),
    refs,
    quick("pro", draws="2", kept="1"),
    loop.begin(START),
    loop.LoopConfig(rounds=50, patience=2),
    0,
  )
  idle = [row["idle"] for row in state.history]
  assert len(idle) < 51 and (idle[-1] == 2 or state.history[-1]["new"] == 0)


def test_an_interrupted_run_goes_on(world):
  made, refs = world
  config = loop.LoopConfig(rounds=4)
  method = quick("mert")
  saved = []
  whole = loop.run(
    decoder(made),
    refs,
    method,
    loop.begin(START),
    config,
    3,
    on_round=lambda state: saved.append(loop.to_arrays(state)),
  )
  for arrays in saved:
    rest = loop.run(
      decoder(made), refs, method, loop.from_arrays(arrays), config, 3
    )
    assert rest.weights == whole.weights
    assert rest.best_weights == whole.best_weights
    assert rest.history == whole.history


@pytest.mark.parametrize("changes", [{}, {"batch_size": 4}])
def test_held_out_sentences_judge_and_teach_nothing(world, changes):
  made, refs = world
  held = [row for row in range(30) if row % 3 == 2]
  config = loop.LoopConfig(rounds=3, held_out=3, **changes)
  run = lambda refs: loop.run(
    decoder(made), refs, quick("kbmira"), loop.begin(START), config, 1
  )
  state = run(refs)
  # Other references of these sentences: same steps, other scores.
  others = [
    [" ".join(reversed(line.split())) for line in rows] if row in held else rows
    for row, rows in enumerate(refs)
  ]
  changed = run(others)
  weights = lambda state: [record["weights"] for record in state.history]
  scores = lambda state: [record["score"] for record in state.history]
  assert weights(state) == weights(changed)
  assert scores(state) != scores(changed)
  # The score is theirs alone.
  whole = loop.LoopConfig(rounds=0)
  part = [refs[row] for row in held]
  alone = lambda weights, numbers: decoder(made)(
    weights, np.array(held)[numbers]
  )
  judged = loop.run(
    alone, part, quick("kbmira"), loop.begin(state.best_weights), whole, 1
  )
  assert judged.best_score == pytest.approx(state.best_score)


def test_who_can_be_held_out(world):
  made, refs = world
  for name, held_out in (("mert", 1), ("forest-mert", 2)):
    method = methods.find(name)
    with pytest.raises(InputError, match="held_out"):
      loop.run(
        decoder(made),
        refs,
        method,
        loop.begin(START),
        loop.LoopConfig(held_out=held_out),
        1,
      )


def test_best_of_all_rounds():
  history = [{"score": value} for value in (0.4, 0.0, 0.7)]
  assert loop.best_of(history, "wer") == 0.0
  assert loop.best_of(history, "bleu") == 0.7
  history = [{"score": value} for value in (-0.4, -0.1)]
  assert loop.best_of(history, "bleu:0.1,ter:0.9") == -0.1


def test_a_perfect_error_rate():
  """A score of 0 that cannot be improved is still the best."""
  made = small_pool.make(0, sentences=6, metrics=("wer",))
  tuned, _ = methods.find("mert").optimise(
    made,
    small_pool.start(made),
    methods.configure(methods.find("mert"), {"metric": "wer"}).config,
    0,
  )
  scores = pool.scores(made, tuned)
  best = pool.best(scores, made.offsets)
  refs = [["nothing"]] * 6
  for row in best.tolist():
    refs[int(made.sentence[row])] = [made.lines[row]]
  refs[3] = [""]  # it has no candidates
  state = loop.run(
    decoder(made),
    refs,
    quick("mert", metric="wer"),
    loop.begin(candidate_lists.from_vector(tuned, made.names)),
    loop.LoopConfig(metric="wer", rounds=1),
    0,
  )
  assert state.best_score == 0.0
  assert loop.best_of(state.history, "wer") == 0.0


@pytest.mark.parametrize(
  "name, changes",
  [
    ("ramp3", {"rate": "0.001", "pull": "27000"}),
    ("softramp3", {"l2": "100", "start_scale": "0", "steps": "20"}),
    ("risk", {"l2": "100", "start_scale": "0", "steps": "20"}),
    ("softmax", {"l2": "100", "optimizer": "sgd", "rate": "0.009"}),
  ],
)
def test_regularisers_pull_to_the_weights_before_the_first_round(
  world, name, changes
):
  made, refs = world
  distances = []

  def note(state):
    moved = [state.weights[name] - START.get(name, 0.0) for name in made.names]
    distances.append(float(np.linalg.norm(moved)))

  loop.run(
    decoder(made, size=40),
    refs,
    quick(name, **changes),
    loop.begin({"constant": 0.0, **START}),
    loop.LoopConfig(rounds=6, merge=False, min_change=0.0),
    1,
    on_round=note,
  )
  assert 0.0 < distances[0] and max(distances) < 1.5 * distances[0], distances


def test_too_strong_a_pull_is_refused(world):
  made, refs = world
  method = quick("ramp3", rate="0.01", pull="3000")
  with pytest.raises(InputError, match="less than the number of sentences"):
    loop.run(
      decoder(made), refs, method, loop.begin(START), loop.LoopConfig(), 1
    )
