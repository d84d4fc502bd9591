"""Data inside a page: blocks that scripts read, some of them compressed.

Nothing in a block can end it: `<` is escaped in JSON, and base64 has none.
"""

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any


def to_json(value: Any) -> str:
  """Returns compact JSON that may stand in a script element."""
  text = json.dumps(
    value, ensure_ascii=False, separators=(",", ":"), allow_nan=False
  )
  return escaped(text)


def escaped(text: str) -> str:
  """Returns JSON text as it may stand in a script element."""
  for sign in "<>&\u2028\u2029":  # in JSON they occur in strings only
    text = text.replace(sign, f"\\u{ord(sign):04x}")
  return text


def plain(name: str, value: Any) -> str:
  """Returns a block of JSON."""
  return (
    f'<script type="application/json" id="data-{name}">{to_json(value)}'
    "</script>\n"
  )


def packed(name: str, text: str) -> str:
  """Returns a block of JSON text that is unpacked when it is needed."""
  data = gzip.compress(text.encode(), 9, mtime=0)
  return (
    f'<script type="application/gzip" id="data-{name}">'
    f"{base64.b64encode(data).decode()}</script>\n"
  )


def unpack(block: str) -> Any:
  """Returns the value of a block that `packed` or `plain` has made."""
  text = block[block.index(">") + 1 : block.rindex("</script>")]
  if 'type="application/gzip"' not in block:
    return json.loads(text)
  return json.loads(gzip.decompress(base64.b64decode(text)))


def joined(texts: Mapping[str, str] | list[str]) -> str:
  """Returns JSON of a list or an object whose values are JSON already."""
  if isinstance(texts, list):
    return "[" + ",".join(texts) + "]"
  pairs = (f"{json.dumps(name)}:{text}" for name, text in texts.items())
  return "{" + ",".join(pairs) + "}"
