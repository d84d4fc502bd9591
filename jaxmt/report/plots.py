"""Plots as PNG bytes. Needs matplotlib (extra `plots`); None without it."""

import importlib.util
import io
from collections.abc import Mapping, Sequence

_SIZE_INCHES = (7.0, 3.2)


def available() -> bool:
  """Whether matplotlib is installed."""
  return importlib.util.find_spec("matplotlib") is not None


def bars(
  values: Mapping[str, float],
  *,
  label: str,
  errors: Mapping[str, float] | None = None,
) -> bytes | None:
  """Draws one horizontal bar for each name; `errors` are half-widths."""
  if not available():
    return None
  figure, axes = _figure()
  names = list(values)
  widths = [errors.get(name, 0.0) for name in names] if errors else None
  axes.barh(names, list(values.values()), xerr=widths, color="#4477aa")
  axes.invert_yaxis()
  axes.set_xlabel(label)
  return _png(figure)


def lines(
  series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
  *,
  x_label: str,
  y_label: str,
) -> bytes | None:
  """Draws one line for each name, through its `(x, y)` points; None: none."""
  if not series or not available():
    return None
  from matplotlib.ticker import MaxNLocator

  figure, axes = _figure()
  for name, (x, y) in series.items():
    axes.plot(x, y, marker="o", markersize=3, label=name)
  places = [one for x, _ in series.values() for one in x]
  if all(float(one).is_integer() for one in places):
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
  axes.set_xlabel(x_label)
  axes.set_ylabel(y_label)
  axes.legend()
  return _png(figure)


def histogram(
  samples: Mapping[str, Sequence[float]], *, x_label: str, bins: int = 30
) -> bytes | None:
  """Draws the distribution of each named sample."""
  if not available():
    return None
  figure, axes = _figure()
  axes.hist(list(samples.values()), bins=bins, label=list(samples))
  axes.set_xlabel(x_label)
  axes.legend()
  return _png(figure)


def _figure():
  # Not pyplot: figures of our own leave no global state behind.
  from matplotlib.figure import Figure

  figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
  axes = figure.add_subplot()
  axes.spines[["top", "right"]].set_visible(False)
  return figure, axes


def _png(figure) -> bytes:
  stream = io.BytesIO()
  figure.savefig(stream, format="png", dpi=130, metadata={"Software": None})
  return stream.getvalue()
