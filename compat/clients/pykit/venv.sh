#!/usr/bin/env bash
# venv.sh <dir> <package==version>...: a virtual environment that has exactly
# these. Doing it twice is cheap: what was asked for is written down beside it.
set -euo pipefail
dir=$1
shift
python=${PYTHON:-python3}
want="$("$python" -c 'import sys; print(sys.version)') $*"
if [[ -f "$dir/wanted" && "$(<"$dir/wanted")" == "$want" ]]; then
	exit 0
fi
rm -rf "$dir"
# Without a pip of its own, whose unpacking is most of the work.
"$python" -m venv --without-pip "$dir"
"$python" -m pip --python "$dir/bin/python" install --quiet --no-deps --only-binary :all: "$@"
printf '%s' "$want" >"$dir/wanted"
