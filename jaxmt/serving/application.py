"""The web application: a page, three ways to ask, health and numbers.

    POST /translate   {"text": ["..."], "nbest": 5}
    POST /kbest       {"text": ["..."], "size": 100}
    POST /forest      {"text": "...", "size": 20}
    GET  /            the live page
    GET  /healthz     {"status": "ok", ...}
    GET  /metrics     counters, in the text format of Prometheus

Errors are `{"error": "reason"}`: 4xx for requests that cannot be served, 503
when too much waits or the server is stopping, 504 when an answer took too long.
"""

import asyncio
import collections
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
  HTMLResponse,
  JSONResponse,
  PlainTextResponse,
  Response,
)
from starlette.routing import Route

from jaxmt.report import blocks, page
from jaxmt.runtime import progress
from jaxmt.serving import requests
from jaxmt.serving.batching import Batcher, Busy, Job, Stopped
from jaxmt.serving.requests import BadRequest, Limits
from jaxmt.serving.service import BEST, LISTS, VIEWS, Service

_LIVE = (*page.COMPONENTS, "live.js")


class ServerState:
  """What the handlers share: the queue, limits and counters."""

  def __init__(
    self, service: Service, batcher: Batcher, limits: Limits, sample: str
  ):
    self.service, self.batcher, self.limits = service, batcher, limits
    self.answers: collections.Counter[tuple[str, int]] = collections.Counter()
    self.seconds: dict[str, float] = collections.defaultdict(float)
    self._page = _live_page(service, sample)

  async def translate(self, request: Request) -> Response:
    """The best translation of each line, and more on request."""
    asked = await self._read(request, "nbest")
    kind = LISTS if asked.nbest > 1 else BEST
    found = await self._results(kind, asked.lines, asked.nbest)
    translations = [
      {"text": one["text"], "score": one["score"]}
      | (
        {
          "nbest": [
            {"text": text, "score": score}
            for text, score, *_ in one["nbest"][: asked.nbest]
          ]
        }
        if kind == LISTS
        else {}
      )
      for one in found
    ]
    return JSONResponse(
      {"system": self.service.system, "translations": translations}
    )

  async def kbest(self, request: Request) -> Response:
    """The k best translations with their features."""
    asked = await self._read(request, "size")
    found = await self._results(LISTS, asked.lines, asked.nbest)
    return JSONResponse(
      {
        "system": self.service.system,
        "features": self.service.features,
        "weights": self.service.weights,
        "lists": [one["nbest"][: asked.nbest] for one in found],
      }
    )

  async def forest(self, request: Request) -> Response:
    """Derivation, chart, list and forest of one sentence."""
    asked = await self._read(request, "size")
    if len(asked.lines) > 1:
      raise BadRequest("one sentence at a time")
    (found,) = await self._results(VIEWS, asked.lines, asked.nbest)
    return JSONResponse(
      {
        "system": self.service.system,
        "features": self.service.features,
        "weights": self.service.weights,
        **found,
      }
    )

  async def home(self, request: Request) -> Response:
    """The live page."""
    del request
    return HTMLResponse(self._page, headers={"Cache-Control": "no-store"})

  async def health(self, request: Request) -> Response:
    """Whether the server can answer."""
    del request
    return JSONResponse(
      {
        "status": "ok",
        "system": self.service.system,
        "waiting": self.batcher.waiting,
      }
    )

  async def metrics(self, request: Request) -> Response:
    """Counters, in the text format of Prometheus."""
    del request
    counts = self.batcher.counts
    lines = [
      *_metric("batches_total", "counter", counts.batches),
      *_metric("sentences_total", "counter", counts.lines),
      *_metric("failed_batches_total", "counter", counts.failures),
      *_metric("dropped_requests_total", "counter", counts.dropped),
      *_metric("decode_seconds_total", "counter", round(counts.seconds, 4)),
      *_metric("waiting_sentences", "gauge", self.batcher.waiting),
      "# TYPE jaxmt_requests_total counter",
      *(
        f'jaxmt_requests_total{{path="{path}",status="{status}"}} {value}'
        for (path, status), value in sorted(self.answers.items())
      ),
      "# TYPE jaxmt_request_seconds_total counter",
      *(
        f'jaxmt_request_seconds_total{{path="{path}"}} {value:.4f}'
        for path, value in sorted(self.seconds.items())
      ),
    ]
    return PlainTextResponse("\n".join(lines) + "\n")

  async def _read(self, request: Request, size_name: str):
    """The checked request; a large body is not read to its end."""
    length = request.headers.get("content-length", "")
    body = b""
    if not length.isdigit() or int(length) <= self.limits.bytes:
      async for part in request.stream():
        body += part
        if len(body) > self.limits.bytes:
          break
    else:
      raise BadRequest(f"body of more than {self.limits.bytes} bytes", 413)
    return requests.read(body, limits=self.limits, size_name=size_name)

  async def _results(self, kind: str, lines: list[str], size: int) -> Any:
    words = lines
    if self.service.source_language:  # only now are the words known
      words = await asyncio.to_thread(self.service.tokenised, lines)
    views = kind == VIEWS
    most = self.limits.forest_words if views else self.limits.words
    requests.check_words(words, most)
    job = Job(kind=kind, lines=words, size=size)
    return await self.batcher.results(job, timeout=self.limits.seconds)

  def counted(
    self, path: str, handler: Callable[[Request], Awaitable[Response]]
  ) -> Callable[[Request], Awaitable[Response]]:
    """Returns the handler with counters, and errors as answers."""

    async def answer(request: Request) -> Response:
      start = progress.clock()
      try:
        response = await handler(request)
      except BadRequest as error:
        response = _error(str(error), error.status)
      except Busy as error:
        response = _error(f"busy: {error}", 503, {"Retry-After": "1"})
      except Stopped as error:
        response = _error(str(error), 503)
      except TimeoutError:
        response = _error(f"no answer in {self.limits.seconds:g} seconds", 504)
      except HTTPException:
        raise
      except Exception as error:  # the decoder failed; say so, and go on
        progress.say(f"{path}: {type(error).__name__}: {error}")
        response = _error("internal error", 500)
      self.answers[path, response.status_code] += 1
      self.seconds[path] += progress.clock() - start
      return response

    return answer


def _error(
  reason: str, status: int, headers: dict[str, str] | None = None
) -> Response:
  return JSONResponse({"error": reason}, status_code=status, headers=headers)


def _metric(name: str, kind: str, value: float) -> list[str]:
  return [f"# TYPE jaxmt_{name} {kind}", f"jaxmt_{name} {value}"]


def _live_page(service: Service, sample: str) -> str:
  data = {
    "system": service.system,
    "features": service.features,
    "weights": service.weights,
    "sample": sample,
  }
  return page.page(
    "jaxmt live",
    [blocks.plain("live", data)],
    scripts=_LIVE,
    start="jaxmt.live();",
    connect=True,
  )


def make(
  service: Service,
  *,
  limits: Limits | None = None,
  batch_lines: int = 256,
  waiting_lines: int = 4096,
  sample: str = "",
) -> Starlette:
  """Returns the application; its decoder stops with it, when all is answered.

  Args:
    service: the system.
    limits: how large requests may be.
    batch_lines: lines decoded together.
    waiting_lines: lines that may wait.
    sample: text that the page begins with.
  """
  batcher = Batcher(
    service.work, batch_lines=batch_lines, waiting_lines=waiting_lines
  )
  shared = ServerState(service, batcher, limits or Limits(), sample)

  @contextlib.asynccontextmanager
  async def lifespan(app: Starlette):
    del app
    yield
    await asyncio.to_thread(batcher.stop)

  post, get = ["POST"], ["GET"]
  handlers = {
    "/translate": (shared.translate, post),
    "/kbest": (shared.kbest, post),
    "/forest": (shared.forest, post),
    "/": (shared.home, get),
    "/healthz": (shared.health, get),
    "/metrics": (shared.metrics, get),
  }
  return Starlette(
    routes=[
      Route(path, shared.counted(path, handler), methods=methods)
      for path, (handler, methods) in handlers.items()
    ],
    lifespan=lifespan,
  )
