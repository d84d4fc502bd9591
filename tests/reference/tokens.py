"""Tokens and their numbers by `str` methods and a dictionary."""

import re


def split(line):
  return [token for token in re.split(r"[ \t\n\r\v\f]+", line) if token]


def intern(lines):
  numbers = {}
  rows = [
    [numbers.setdefault(token, len(numbers)) for token in split(line)]
    for line in lines
  ]
  return rows, list(numbers)
