#!/bin/sh
# Prepare .venv: labkit, and what its labs and tests need, at the versions of constraints.txt.
# Usage: scripts/setup.sh [EXTRA]...       extras of pyproject.toml beside dev, for instance: bench
#
# Does nothing when that is done already (a stamp in .venv says so), and starts over when pyproject.toml or
# constraints.txt have changed. A call that failed or was interrupted leaves no stamp: the next one resumes.
# POSIX sh, and only flags that BSD tools know too.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
root=$(pwd -P)
log=.venv/setup.log

stop() { printf 'labkit: %s\n' "$@" >&2; exit 1; }
show_log() { tail -n 15 "$log" | sed 's/^/  | /' >&2; }

# ---- Done already? A stamp per extra, holding what it was made from.

inputs=$(echo "$root"; cksum pyproject.toml constraints.txt)
is_ready() { [ -x .venv/bin/python ] && [ "$(cat ".venv/.setup-$1" 2>/dev/null)" = "$inputs" ]; }

ready=yes
for extra in dev "$@"; do is_ready "$extra" || ready=no; done
if [ "$ready" = yes ]; then exit 0; fi

# ---- Can this machine hold it?

case "$(uname -sm)" in
MINGW* | MSYS* | CYGWIN*)
    stop "Windows is supported through WSL only. Run 'wsl --install' once, then call make inside WSL." ;;
"Darwin x86_64")
    stop "torch has no builds for Intel Macs since 2.3, and labkit needs 2.9. Use an Apple-silicon Mac or Linux." ;;
esac

need_mb=${LABKIT_MIN_FREE_MB:-3072}
free_mb=$(df -Pk . | awk 'NR > 1 { for (i = 1; i < NF; i++) if ($(i + 1) ~ /^[0-9]+%$/) { print int($i / 1024); exit } }')
if [ "${free_mb:-$need_mb}" -lt "$need_mb" ]; then
    stop "too little disk space in $root: $free_mb MB free, $need_mb MB needed." \
        "Make room, or set LABKIT_MIN_FREE_MB to the number of MB that you know to be enough."
fi

# ---- From here on nothing half-done can pass for ready.

rm -f .venv/.setup-*
trap 'stop "interrupted. The next call resumes."' INT TERM

# ---- Make the virtual environment, unless a sound one lies here. One that was moved still points to its old place.

is_sound() {
    .venv/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
        grep -qF "$root/.venv/bin/python" .venv/bin/pip 2>/dev/null
}

find_python() { # sets: python, found
    python='' found=''
    for candidate in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3; do
        # A version manager may put commands on the path that only say "not installed": ask each for its version.
        version=$("$candidate" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue
        case "$version" in
        3.[0-9].* | 3.10.* | [!3].* | '') found="${found:+$found, }$candidate is ${version:-silent}" ;;
        *) python=$candidate; return ;;
        esac
    done
}

if ! is_sound; then
    find_python
    if [ -z "$python" ]; then
        stop "needs Python 3.11 or later, found: ${found:-no Python at all}. If one lies elsewhere: make setup PYTHON=/path/to/python3" \
            "Get one from python.org/downloads, 'brew install python@3.13' (macOS) or 'sudo apt install python3 python3-venv' (Debian 12, Ubuntu 24.04)."
    fi
    if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        stop "$python ($version) has no venv module. On Debian and Ubuntu: sudo apt install python${version%.*}-venv"
    fi
    [ "$python" = "${PYTHON:-$python}" ] || echo "labkit: PYTHON=$PYTHON does not run or is too old; taking $python"
    echo "labkit: making .venv with $python ($version)"
    "$python" -m venv --clear .venv || stop "$python ($version) could not make the virtual environment $root/.venv."
fi

# ---- Install.

unreachable='connection broken|ConnectionError|name resolution|ProxyError|SSLError|timed out|could not fetch URL|HTTP error'
extras=$(IFS=,; set -- dev "$@"; echo "$*")
echo "labkit: installing into .venv; the first time this takes minutes and some GB. Progress: tail -f $log"
if ! .venv/bin/python -m pip install --no-input --disable-pip-version-check \
    -c constraints.txt -e ".[$extras]" >"$log" 2>&1; then
    show_log
    if grep -q 'No space left on device' "$log"; then
        stop "the disk is full. Make room and call again; the log is in $log"
    elif grep -qiE "$unreachable" "$log"; then
        stop "could not reach the package index. Offline? Behind a proxy or a mirror, set PIP_PROXY or PIP_INDEX_URL (and PIP_CERT)." \
            "Then call again; the log is in $log"
    elif grep -q 'No matching distribution found' "$log"; then
        stop "the package index has no build of a package for this Python and machine; the log is in $log" \
            "Another Python may do: make distclean, then make setup PYTHON=python3.11. With PIP_INDEX_URL set, ask what it mirrors."
    fi
    stop "pip failed, though it reached the package index. Call again to retry; the log is in $log"
fi
if ! .venv/bin/python -c 'import torch, jupyterlab' >>"$log" 2>&1; then
    show_log
    stop "everything was installed, but torch or jupyterlab cannot be imported. The log is in $log"
fi
for extra in dev "$@"; do echo "$inputs" >".venv/.setup-$extra"; done
echo "labkit: .venv is ready"
