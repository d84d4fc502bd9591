"""Flags of beam search, shared by the programs that decode and tune."""

from absl import flags

BEAM = flags.DEFINE_integer("beam", 30, "hypotheses per cell", lower_bound=1)
POP = flags.DEFINE_integer(
  "pop",
  200,
  "candidates scored with the language model per cell",
  lower_bound=1,
)
TARGETS = flags.DEFINE_integer(
  "targets",
  None,
  "target sides per source pattern; 20 if not given",
  lower_bound=1,
)
BACKEND = flags.DEFINE_enum(
  "backend",
  "auto",
  ("auto", "host", "device"),
  "what searches charts and stacks: kernels on the host, array programs on"
  " devices, or kernels where they can",
)
DEVICES = flags.DEFINE_integer(
  "devices", 1, "devices to split batches over", lower_bound=1
)
