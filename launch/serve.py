"""Serves a finished run: a live page, and translations as JSON.

    python launch/serve.py --workdir=runs/quickstart
    curl -d '{"text": ["他 昨天 买 了 书 。"], "nbest": 5}' \
      http://127.0.0.1:8000/translate

The page at / shows translation, k-best list, derivation and chart of what is
typed, with a slider for every weight. POST /translate, /kbest and /forest give
the same as JSON; GET /healthz and /metrics tell how it goes. Requests that come
together are decoded together. Only this machine can connect unless --host says
otherwise; there is no encryption and no password. SIGTERM and Ctrl-C answer
what has been asked, then end.

Lines are tokenised, unless --source_language and --target_language are given.
There are no trees of what is typed, so tree-to-string rules do not apply.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import pathlib
import signal

from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment import finished_run, saved_systems
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.runtime import progress
from jaxmt.text import raw_text

_WORKDIR = flags.DEFINE_string(
  "workdir", None, "workdir of launch/train.py, or folder of launch/export.py"
)
_STORE = flags.DEFINE_string(
  "store", None, "folder of its artefacts, if not in the workdir"
)
_SYSTEM = flags.DEFINE_string("system", None, "system; the last one if not set")
_HOST = flags.DEFINE_string("host", "127.0.0.1", "address to listen on")
_PORT = flags.DEFINE_integer(
  "port", 8000, "port; 0 for any free one", lower_bound=0, upper_bound=65535
)
_SOURCE = flags.DEFINE_string("source_language", "", "of raw text")
_TARGET = flags.DEFINE_string("target_language", "", "of raw text")
_BATCH = flags.DEFINE_integer(
  "batch", 256, "lines decoded together", lower_bound=1
)
_WAITING = flags.DEFINE_integer(
  "waiting", 4096, "lines that may wait; more get 503", lower_bound=1
)
_SECONDS = flags.DEFINE_float(
  "seconds", 60.0, "time-out of a request", lower_bound=0.001, upper_bound=1e6
)
_BYTES = flags.DEFINE_integer(
  "bytes", 1 << 20, "largest request body", lower_bound=1
)
_WARM = flags.DEFINE_bool("warm_up", True, "compile before listening")


def _sample(workdir: str) -> list[str]:
  """Lines as they will come: the run's test text, or one word."""
  if (pathlib.Path(workdir) / "run.json").is_file():
    run = finished_run.read(workdir, _STORE.value)
    lines = run.record(run.corpus, Corpus).test_source
    some = [line for line in lines if line.strip()]
    if some:
      return some
  return ["."]


def main(argv: list[str]) -> None:
  """Loads the system and serves it."""
  del argv
  workdir = program.given(_WORKDIR)
  raw_text.check(source_language=_SOURCE.value, target_language=_TARGET.value)
  if bool(_SOURCE.value) != bool(_TARGET.value):
    raise InputError("--source_language and --target_language go together")
  try:
    import uvicorn

    from jaxmt.runtime import compiling
    from jaxmt.serving import application, requests, service
  except ImportError as error:
    raise InputError(
      f"{error.name} is missing: pip install 'jaxmt[serve]'"
    ) from error
  compiling.bound_heap()
  progress.say("loading")
  served = service.Service(
    model=saved_systems.load(workdir, _SYSTEM.value, store=_STORE.value),
    system=saved_systems.system_name(
      workdir, _SYSTEM.value, store=_STORE.value
    ),
    source_language=_SOURCE.value,
    target_language=_TARGET.value,
  )
  sample = _sample(workdir)
  if _WARM.value:
    progress.say("compiling")
    service.warm_up(served, sample, largest=_BATCH.value)
    compiling.return_free()
  app = application.make(
    served,
    limits=requests.Limits(bytes=_BYTES.value, seconds=_SECONDS.value),
    batch_lines=_BATCH.value,
    waiting_lines=_WAITING.value,
    sample=sample[0],
  )
  config = uvicorn.Config(
    app,
    host=_HOST.value,
    port=_PORT.value,
    log_level="warning",
    access_log=False,
    timeout_graceful_shutdown=int(_SECONDS.value) + 1,
    backlog=1024,
  )
  for number in (signal.SIGTERM, signal.SIGINT):
    # The server drains, then raises the signal again: that is a good end.
    signal.signal(number, lambda *_: None)
  _server(config).run()


def _server(config):
  """A server that says where it listens, and when it ends."""
  import uvicorn

  class Server(uvicorn.Server):
    async def startup(self, sockets=None) -> None:
      await super().startup(sockets=sockets)
      for server in self.servers:
        for socket in server.sockets:
          host, port = socket.getsockname()[:2]
          progress.say(f"listening on http://{host}:{port}/")

    async def shutdown(self, sockets=None) -> None:
      progress.say("answering what has been asked")
      await super().shutdown(sockets=sockets)
      progress.say("stopped")

  return Server(config)


if __name__ == "__main__":
  program.run(main)
