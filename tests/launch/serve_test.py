"""The server: a real process, asked over loopback and in a real browser."""

import concurrent.futures
import http.client
import json
import re
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

import jaxmt
from jaxmt.features import weights as weight_files
from jaxmt.grammar import native
from jaxmt.lm import arpa_write
from jaxmt.lm import kneser_ney as lm_estimate
from jaxmt.lm import word_ids as lm_text
from jaxmt.text import files
from tests import util
from tests.reference import tiny_training
from tests.report import browser

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'jaxmt[serve]'")
pytestmark = pytest.mark.slow
PATIENCE = 120
LINES = [pair[0] for pair in tiny_training.PAIRS]


def write_system(folder):
  """A folder as `launch/export.py` writes them, of a few words."""
  native.write(str(folder / "grammar"), tiny_training.extracted().table)
  sentences, words = lm_text.encode_corpus(
    [pair[1] for pair in tiny_training.PAIRS]
  )
  config = lm_estimate.EstimateConfig(order=2, fallback=lm_estimate.FALLBACK)
  model = lm_estimate.estimate(sentences, words, config)
  arpa_write.write_arpa(str(folder / "lm.arpa"), model)
  lines = weight_files.format_weights(tiny_training.WEIGHTS)
  files.write_lines(str(folder / "weights.txt"), lines)
  settings = {
    "format": "jaxmt-system", "version": 1, "system": "tiny",
    "grammar": "grammar", "lm": "lm.arpa", "weights": "weights.txt",
    "dialect": "jaxmt", "span": 10, "targets": 20, "binarize": False,
    "beam": 12, "pop": 40, "batch_cells": 4096,
  }  # fmt: skip
  (folder / "settings.json").write_text(json.dumps(settings))
  return folder


class Served:
  """A running server."""

  def __init__(self, folder, *flags):
    self.process = subprocess.Popen(
      [
        sys.executable,
        str(util.ROOT / "launch/serve.py"),
        f"--workdir={folder}",
        "--port=0",
        *flags,
      ],
      stderr=subprocess.PIPE,
      text=True,
      cwd=util.ROOT,
    )
    self.said = self.read_until("listening on")
    self.port = int(re.search(r":(\d+)/", self.said)[1])

  def read_until(self, words):
    said, end = "", time.monotonic() + PATIENCE
    while words not in said:
      assert time.monotonic() < end, said
      if select.select([self.process.stderr], [], [], 1)[0]:
        line = self.process.stderr.readline()
        assert line, f"ended: {said}"
        said += line
    return said

  def ask(self, path, body=None, method=None):
    """`(status, value)`; a body that is no bytes becomes JSON."""
    link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
    if body is not None and not isinstance(body, bytes):
      body = json.dumps(body).encode()
    link.request(method or ("POST" if body is not None else "GET"), path, body)
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    kind = answer.getheader("content-type", "")
    return answer.status, json.loads(text) if "json" in kind else text

  def end(self):
    self.process.send_signal(signal.SIGTERM)
    code = self.process.wait(PATIENCE)
    self.process.stderr.close()
    return code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  return write_system(tmp_path_factory.mktemp("system"))


@pytest.fixture(scope="module")
def server(folder):
  made = Served(folder, "--bytes=5000", "--batch=64")
  yield made
  assert made.end() == 0


@pytest.fixture(scope="module")
def offline(folder):
  return jaxmt.decode(jaxmt.load(str(folder)), LINES)


def test_it_listens_on_loopback_only(server):
  assert "http://127.0.0.1:" in server.said
  hosts = {one[4][0] for one in socket.getaddrinfo(socket.gethostname(), None)}
  for host in hosts - {"127.0.0.1", "::1", "127.0.1.1"}:
    with pytest.raises(OSError):
      socket.create_connection((host, server.port), timeout=2)


def test_translations_are_those_of_the_library(server, offline):
  status, found = server.ask("/translate", {"text": LINES})
  assert status == 200 and found["system"] == "tiny"
  assert [one["text"] for one in found["translations"]] == offline.text
  for one, score in zip(found["translations"], offline.scores, strict=True):
    assert one["score"] == pytest.approx(score, abs=1e-3)
    assert "nbest" not in one


def test_nbest_and_kbest_lists_are_those_of_the_library(server, offline):
  lists = jaxmt.kbest(offline, 4)
  _, found = server.ask("/translate", {"text": LINES, "nbest": 4})
  got = [[x["text"] for x in one["nbest"]] for one in found["translations"]]
  assert got == lists.lines
  _, found = server.ask("/kbest", {"text": LINES, "size": 4})
  assert [[row[0] for row in one] for one in found["lists"]] == lists.lines
  weights = dict(enumerate(found["weights"]))
  for row in found["lists"][0]:
    total = sum(weights[name] * value for name, value in row[2])
    assert total == pytest.approx(row[1], abs=1e-2)


def test_a_forest_comes_with_its_derivation_and_chart(server, offline):
  status, found = server.ask("/forest", {"text": LINES[4], "size": 3})
  assert status == 200 and found["text"] == offline.text[4]
  assert len(found["forest"]["nodes"]) == offline.forests[4].num_nodes
  assert len(found["forest"]["edges"]) == offline.forests[4].num_edges
  assert found["chart"]["k"] == 12 and found["derivation"]["n"]
  # Every part of the translation stands in the beam of its cell.
  assert len(found["parts"]) == len(found["derivation"]["n"])
  for begin, end, glue, rank, competing, gap, kept in found["parts"]:
    assert kept and 1 <= rank <= competing and gap > -1e-3
    assert [begin, end, glue] in [one[:3] for one in found["chart"]["c"]]
  status, found = server.ask("/forest", {"text": ""})
  assert status == 200 and found["derivation"] is None


@pytest.mark.parametrize(
  ("path", "body", "status"),
  [
    ("/translate", b"{", 400),
    ("/translate", b"", 400),
    ("/translate", {"text": 5}, 400),
    ("/kbest", {"text": "a", "nbest": 2}, 400),
    ("/forest", {"text": ["a", "b"]}, 400),
    ("/forest", {"text": "a " * 200}, 413),
    ("/translate", {"text": "a" * 6000}, 413),
    ("/translate", {"text": "a", "nbest": 1000}, 413),
    ("/nothing", {"text": "a"}, 404),
    ("/translate", None, 405),
  ],
)
def test_bad_requests_get_4xx_and_a_reason(server, path, body, status):
  got, found = server.ask(path, body)
  assert got == status
  if status in (400, 413):
    assert found["error"]


def test_a_body_without_end_is_cut_off(server):
  with socket.create_connection(("127.0.0.1", server.port), timeout=30) as link:
    head = "POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
    link.sendall(f"{head}\r\n\r\n".encode())
    for _ in range(10):
      link.sendall(b"400\r\n" + b"a" * 1024 + b"\r\n")
    assert b" 413 " in link.recv(1000).split(b"\r\n")[0]


def test_requests_at_once_are_decoded_in_batches(server, offline):
  _, before = server.ask("/metrics")
  jobs = [LINES[n % len(LINES)] for n in range(120)]
  with concurrent.futures.ThreadPoolExecutor(60) as pool:
    asked = [pool.submit(server.ask, "/translate", {"text": x}) for x in jobs]
    found = [one.result() for one in asked]
  assert {status for status, _ in found} == {200}
  want = dict(zip(LINES, offline.text, strict=True))
  for line, (_, value) in zip(jobs, found, strict=True):
    # "das haus" stands twice among the lines, with one translation.
    assert value["translations"][0]["text"] == want[line]
  _, after = server.ask("/metrics")
  count = lambda text, name: float(re.search(rf"^{name} (.*)$", text, re.M)[1])
  sentences = count(after, "jaxmt_sentences_total") - count(
    before, "jaxmt_sentences_total"
  )
  batches = count(after, "jaxmt_batches_total") - count(
    before, "jaxmt_batches_total"
  )
  assert sentences == 120 and batches < 60
  assert 'jaxmt_requests_total{path="/translate",status="400"}' in after


def test_health(server):
  assert server.ask("/healthz") == (
    200,
    {"status": "ok", "system": "tiny", "waiting": 0},
  )


def test_the_live_page_translates_and_ranks(server, tmp_path):
  with browser.opened(tmp_path) as driver:
    browser.visit(driver, f"http://127.0.0.1:{server.port}/")
    driver.execute_script(
      "document.getElementById('source').value = 'das <b>x</b> haus ist alt'"
    )
    browser.click(driver, "#translate")
    browser.wait(
      driver,
      "return document.getElementById('translation')?.textContent"
      ".includes('<b>x</b>')",
    )
    browser.click(driver, ".chart .cell")
    assert driver.execute_script(
      "return document.querySelectorAll('.chart .ring.kept').length"
    )
    rows = "return [...document.querySelectorAll('.kbest tbody tr')]"
    order = f"{rows}.map((r) => r.dataset.candidate).join()"
    before = driver.execute_script(order)
    driver.execute_script(
      "for (const s of document.querySelectorAll('.sliders input'))"
      "{ s.value = -s.value; s.dispatchEvent(new Event('input')) }"
    )
    assert driver.execute_script(order) != before
    assert browser.console(driver) == []
    own = f"http://127.0.0.1:{server.port}/"
    for url in browser.requests(driver):
      assert url.startswith((own, "about:", "data:")), url


def test_sigterm_answers_what_was_asked(folder):
  """Those who have asked get their answers; then it ends with 0."""
  served = Served(folder, "--batch=2", "--nowarm_up")
  with concurrent.futures.ThreadPoolExecutor(8) as pool:
    asked = [
      pool.submit(served.ask, "/translate", {"text": line})
      for line in LINES[:8]
    ]
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
      if "jaxmt_waiting_sentences 0" not in served.ask("/metrics")[1]:
        break  # some wait while the first one is compiled for
    code = served.end()
    found = [one.result() for one in asked]
  assert code == 0
  assert [status for status, _ in found] == [200] * 8


def test_bad_flags_are_one_line(tmp_path, folder):
  done = util.run_program("launch/serve.py", f"--workdir={tmp_path}")
  assert done.returncode == 2
  assert "no run of launch/train.py" in done.stderr.splitlines()[-1]
  done = util.run_program(
    "launch/serve.py", f"--workdir={folder}", "--source_language=zh"
  )
  assert done.returncode == 2 and "go together" in done.stderr
  done = util.run_program(
    "launch/serve.py", f"--workdir={folder}", "--port=70000"
  )
  assert done.returncode == 2


def test_a_port_in_use_is_said(server, folder):
  done = util.run_program(
    "launch/serve.py",
    f"--workdir={folder}",
    f"--port={server.port}",
    "--nowarm_up",
  )
  assert done.returncode != 0
  assert "in use" in done.stderr
