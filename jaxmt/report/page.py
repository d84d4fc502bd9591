"""Pages: one HTML file that needs nothing beside it, and no network.

Styles and scripts are the files of `static/`, written by hand and put into the
page as they are. A policy in the page names their hashes: nothing else can run
in it, and nothing can be loaded from elsewhere, whatever the data holds.
"""

import base64
import functools
import hashlib
import html
import importlib.resources
from collections.abc import Sequence

# What components need, in order; pages add their own.
COMPONENTS = (
  *("dom.js", "tables.js", "figures.js", "glossary.js", "diff.js", "kbest.js"),
  *("derivation.js", "chart.js", "graphs.js"),
)
REPORT = (
  *(*COMPONENTS, "compare.js", "why.js", "sentence.js", "sentences.js"),
  *("overview.js", "learning.js", "report.js"),
)


@functools.cache
def static(name: str) -> str:
  """Returns the text of a file of `static/`."""
  folder = importlib.resources.files("jaxmt.report") / "static"
  return (folder / name).read_text(encoding="utf-8")


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


def page(
  title: str,
  sections: Sequence[str],
  footer: str = "",
  *,
  scripts: Sequence[str] = ("dom.js", "tables.js"),
  start: str = (
    "document.querySelectorAll('table').forEach((t) => jaxmt.sortable(t));"
    "jaxmt.start();"
  ),
  connect: bool = False,
) -> str:
  """Returns a whole document.

  Args:
    title: of the page.
    sections: HTML; for pages that draw themselves, blocks of data.
    footer: plain text.
    scripts: files of `static/`.
    start: what the last script runs.
    connect: whether the page may talk to the server it comes from.
  """
  style = static("page.css")
  code = "\n".join(static(name) for name in scripts) + f"\n{start}\n"
  if "</script" in code or "<!--" in code:
    raise ValueError("a script must not hold the end of a script")
  policy = [
    "default-src 'none'",
    "img-src data:",
    f"style-src '{_hash(style)}'",
    f"script-src '{_hash(code)}'",
    "base-uri 'none'",
    "form-action 'none'",
  ]
  if connect:
    policy.append("connect-src 'self'")
  return (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(policy)}">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    f"<title>{html.escape(title)}</title><style>{style}</style></head>"
    f'<body class="jaxmt"><header><h1>{html.escape(title)}</h1><nav></nav>'
    f'</header><main id="report">{"".join(sections)}</main>'
    f"<footer>{html.escape(footer)}</footer><script>{code}</script>"
    "</body></html>\n"
  )


def _hash(text: str) -> str:
  digest = hashlib.sha256(text.encode()).digest()
  return f"sha256-{base64.b64encode(digest).decode()}"
