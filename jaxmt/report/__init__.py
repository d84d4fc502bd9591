"""Tables, plots and the HTML report."""

from jaxmt import lazy

__all__, __getattr__, __dir__ = lazy.modules(
  __name__, "blocks", "html", "layouts", "page", "plots", "text_tables", "views"
)
