# Sourced by the other scripts: makes and reuses the environment in .venv.
#
# Needs python3 (3.11 or newer; set PYTHON to choose one) and pip. Afterwards
# $VENV_PYTHON is the environment's interpreter. Re-runnable: installs only when
# pyproject.toml, the pinned versions or the wanted extras have changed.

setup_environment() {  # $1: extras, comma-separated
  local extras=$1 python=${PYTHON:-python3}
  local venv=${JAXMT_VENV:-.venv}
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "setup: $python is missing or older than 3.11; set PYTHON" >&2
    exit 2
  fi
  VENV_PYTHON=$venv/bin/python
  if ! "$VENV_PYTHON" -c '' 2>/dev/null; then
    echo "== creating the environment $venv"
    # Some systems ship Python without ensurepip: then pip installs from outside.
    "$python" -m venv "$venv" 2>/dev/null ||
      "$python" -m venv --clear --without-pip "$venv" || exit 2
  fi
  local stamp=$venv/.jaxmt-installed wanted
  wanted=$(printf '%s\n' "$extras" "$PWD" |
    cat - pyproject.toml tools/constraints.txt |
    "$VENV_PYTHON" -c 'import hashlib, sys
print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "== installing jaxmt[$extras] (about two minutes the first time)"
    local pip=("$VENV_PYTHON" -m pip)
    "$VENV_PYTHON" -m pip --version >/dev/null 2>&1 ||
      pip=("$python" -m pip --python "$VENV_PYTHON")
    "${pip[@]}" install --quiet --disable-pip-version-check \
      --constraint tools/constraints.txt --editable ".[$extras]" || exit 2
    echo "$wanted" >"$stamp"
  fi
}
