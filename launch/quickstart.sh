#!/usr/bin/env bash
# From nothing to results on the embedded corpus: sets up the environment, runs
# configs/quickstart.py, prints the comparison and writes the report.
#   bash launch/quickstart.sh [WORKDIR] [flags of launch/train.py]
# Re-runnable: finished stages are reused.
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/setup.sh
setup_environment plots
workdir=runs/quickstart
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  workdir=$1
  shift
fi
echo "== experiment: configs/quickstart.py -> $workdir"
"$VENV_PYTHON" launch/train.py --config=configs/quickstart.py \
  --workdir="$workdir" --wait "$@"
echo
echo "results: $workdir/results.json"
echo "report:  $workdir/report.html   (open it in a browser: every sentence, and"
echo "         why training changed its translation)"
