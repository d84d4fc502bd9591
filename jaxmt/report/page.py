"""The HTML report: one file that needs nothing beside it."""

import base64
import html
from collections.abc import Sequence

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid #8884;
  text-align: left; vertical-align: top; }
td.number { text-align: right; }
img { max-width: 100%; background: #fff; }
code, pre { font-size: .9em; } pre { overflow-x: auto; }
footer { margin-top: 3rem; color: #888; font-size: .85em; }
"""


def section(title: str, *parts: str) -> str:
  """Returns a section; the parts are HTML."""
  return f"<section><h2>{html.escape(title)}</h2>{''.join(parts)}</section>"


def paragraph(text: str) -> str:
  """Returns plain text as an HTML paragraph."""
  return f"<p>{html.escape(text)}</p>"


def preformatted(text: str) -> str:
  """Returns text shown as it stands."""
  return f"<pre>{html.escape(text)}</pre>"


def image(png: bytes, description: str) -> str:
  """Returns a PNG as an inline image."""
  data = base64.b64encode(png).decode()
  alt = html.escape(description, quote=True)
  return f'<p><img alt="{alt}" src="data:image/png;base64,{data}"></p>'


def page(title: str, sections: Sequence[str], footer: str = "") -> str:
  """Returns the whole document."""
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width">'
    f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
    f"<h1>{html.escape(title)}</h1>{''.join(sections)}"
    f"<footer>{html.escape(footer)}</footer></body></html>\n"
  )
