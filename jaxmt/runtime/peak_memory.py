"""How much memory the process has used at most, since a moment."""

import resource
import sys


def reset() -> None:
  """Starts a new measurement where the system can: Linux."""
  try:
    with open("/proc/self/clear_refs", "w") as out:
      out.write("5")
  except OSError:
    pass  # then `megabytes` is that of the whole process


def megabytes() -> float:
  """Returns the largest resident size since `reset`."""
  try:
    with open("/proc/self/status") as lines:
      for line in lines:
        if line.startswith("VmHWM:"):
          return int(line.split()[1]) / 1024
  except OSError:
    pass
  size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return size / (1024 * 1024 if sys.platform == "darwin" else 1024)
