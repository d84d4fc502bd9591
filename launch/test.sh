#!/usr/bin/env bash
# Sets up the environment, then runs lint, types and the default tests.
#   bash launch/test.sh [pytest arguments]
# JAXMT_DATA, if set, names a folder of real corpora for the tests that use one.
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/setup.sh
setup_environment dev,plots,ray,raw,browser,serve
# Tests of pages need a browser. They are skipped, with a word, without one.
if ! command -v chromedriver >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "== installing chromium for the tests of pages"
    { apt-get install -qq -y chromium chromium-driver ||
      { apt-get update -qq && apt-get install -qq -y chromium chromium-driver; }
    } >/dev/null 2>&1 || echo "could not: these tests will be skipped"
  else
    echo "no chromedriver: tests of pages will be skipped"
  fi
fi
echo "== lint"
"$VENV_PYTHON" -m ruff check .
"$VENV_PYTHON" -m ruff format --check .
echo "== types"
"$VENV_PYTHON" -m pyrefly check
echo "== tests"
if [ -z "${JAXMT_DATA:-}" ]; then
  echo "JAXMT_DATA is not set: tests on real corpora will be skipped"
fi
if [ $# -eq 0 ]; then
  echo "== readers, with bounds checks in the kernels"
  NUMBA_BOUNDSCHECK=1 "$VENV_PYTHON" -m pytest -n 2 --dist=worksteal -q \
    tests/text/{links,trees,vocabulary}_test.py tests/lm/arpa_{parse,read}_test.py \
    tests/tune/formats/kbest_files_test.py tests/grammar/validation_test.py \
    tests/grammar/formats/dialect_test.py
  echo "== all tests"
fi
exec "$VENV_PYTHON" -m pytest -n 2 --dist=worksteal -q -rs "$@"
