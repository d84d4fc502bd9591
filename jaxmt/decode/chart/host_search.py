"""The search as a host kernel: which models it is for, and how it is called.

The array program (`beam_search`) knows every stateful feature, augmented
searches and all devices. The kernel (`cube_kernel`) knows the language model
and labels, and takes the candidates of a cell in a better order: at the same
model score it is several times faster on a CPU. Where both can be used they
search the same space of hypotheses, but may miss different ones.
"""

import jax
import numpy as np

from jaxmt.decode.chart import cube_kernel
from jaxmt.decode.chart.chart_layout import Chart
from jaxmt.decode.chart.search import (
  BACKENDS,
  Beams,
  Candidates,
  SearchConfig,
  Weights,
)
from jaxmt.decode.model import Model
from jaxmt.errors import InputError
from jaxmt.grammar.match.matching import Matches


def on_host(model: Model, backend: str, *, augmented: bool = False) -> bool:
  """Returns whether the kernel searches the model's charts.

  Args:
    model: the model.
    backend: "host", "device", or "auto": the host where it can, on a CPU.
    augmented: whether the search adds losses.

  Raises:
    InputError: if the host is asked for and cannot.
  """
  if backend not in BACKENDS:
    raise InputError(f"backend '{backend}' is none of {', '.join(BACKENDS)}")
  able = not model.extra and not augmented
  if backend == "host" and not able:
    what = "adds losses" if augmented else f"scores {model.extra[0].names[0]}"
    raise InputError(f"a search that {what} does not run on the host")
  if backend == "auto":
    return able and jax.default_backend() == "cpu"
  return backend == "host"


def search(
  chart: Chart,
  matches: Matches,
  model: Model,
  weights: Weights,
  config: SearchConfig,
) -> Beams:
  """Fills a chart with hypotheses, sentence by sentence.

  Args:
    chart: the cells and their applications, on the host.
    matches: the same, in an order in which children precede parents.
    model: has the language model and its weight.
    weights: weights that act during the search.
    config: beam, candidates, and whether all candidates are returned.
  """
  states, (label, site) = chart.inputs[0], chart.inputs[1]
  runs = np.ascontiguousarray(states).reshape(-1, states.shape[2])
  labels = weights.features[1]
  match, mismatch = (0.0, 0.0) if labels is None else labels
  rows, pop = len(chart.rule), config.pop
  whole = np.ascontiguousarray
  beams, application, ranks, head, values = cube_kernel.search_cells(
    matches.place,
    np.diff(matches.offsets),
    cube_kernel.CellApplications(
      whole(chart.rule), whole(chart.child), whole(chart.static)
    ),
    cube_kernel.Rules(
      whole(chart.slots),
      runs,
      runs.view(np.float32),
      whole(label),
      whole(site),
    ),
    cube_kernel.KernelWeights(
      np.float32(model.lm_weight),
      np.float32(match),
      np.float32(mismatch),
      np.float32(weights.threshold),
      np.float32(config.trust),
      labels is not None,
    ),
    cube_kernel.LanguageTable(model.lm.check, model.lm.follow, model.lm.score),
    (config.beam, pop, rows if config.forest else 0),
  )
  candidates = None
  if config.forest:
    candidates = Candidates(
      application=application,
      ranks=ranks,
      head=head,
      gain=values[:, :, 0],
      score=values[:, :, 1],
    )
  return Beams(
    score=beams.score,
    order=beams.score,
    states=(
      beams.states.reshape(rows, config.beam, -1),
      beams.label[:, :, None],
    ),
    back=beams.back,
    candidates=candidates,
  )
