#!/usr/bin/env bash
# The Python module on a GPU, all of it: ./python.sh [--kills COUNT] [--seconds SECONDS] [--rounds ROUNDS] [--only 'PART…']
# What `cargo xtask gpu-bundle --only-module` packed, or folder module of the whole bundle. Needs python3 with PyTorch, CuPy and NumPy.
# Each part's output lies in results/PART.txt; the end is a line for each part and each figure. Exit status: how many
# parts failed; a figure that misses its limit fails nothing. COUNT processes of either side are killed, and no more are begun after SECONDS.
set -u
here=$(cd "$(dirname "$0")" && pwd)
kills=1000 seconds=60 rounds=3 only=""
while [ $# -gt 0 ]; do
    case $1 in
        --kills) kills=$2 ;;
        --seconds) seconds=$2 ;;
        --rounds) rounds=$2 ;;
        --only) only=" $2 " ;;
        *) sed -n '2,5s/^# //p' "$0"; exit 64 ;;
    esac
    shift 2
done
results=${RESULTS:-$here/results}
mkdir -p "$results"
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
python3 -m zipfile -e "$here"/causeway_ipc-*.whl "$site" || exit 65
export PYTHONPATH=$site PYTHONUNBUFFERED=1
export CAUSEWAY_DIR=$site/sockets
mkdir -m 700 "$CAUSEWAY_DIR"
default=expandable_segments:False segments=expandable_segments:True
failures=0 lines=""

# Runs a part; `within` is the longest that it may take.
part() {
    local name=$1 within=$2 begun=$SECONDS
    shift 2
    [ -z "$only" ] || [[ $only == *" $name "* ]] || return
    if timeout "$within" "$@" >"$results/$name.txt" 2>&1; then
        echo "PASS $name ($((SECONDS - begun)) s)" >"$results/$name.verdict"
    else
        echo "FAIL $name (status $?, $((SECONDS - begun)) s)" >"$results/$name.verdict"
    fi
}
# What the parts said, and their verdicts.
report() {
    local name
    for name in "$@"; do
        [ -f "$results/$name.verdict" ] || continue
        echo "=== $name"
        tail -n 60 "$results/$name.txt"
        grep -q ^PASS "$results/$name.verdict" || failures=$((failures + 1))
        lines="$lines$(cat "$results/$name.verdict")"$'\n'
        rm "$results/$name.verdict"
    done
}
echo "=== machine"
uname -srm
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
python3 -c 'import sys, torch, cupy, numpy; print("Python", sys.version.split()[0], "PyTorch", torch.__version__, "CuPy", cupy.__version__, "NumPy", numpy.__version__)'

PYTORCH_CUDA_ALLOC_CONF=$default part pairs-default 150 python3 "$here/module.py" pairs &
PYTORCH_CUDA_ALLOC_CONF=$segments part pairs-segments 150 python3 "$here/module.py" pairs &
PYTORCH_CUDA_ALLOC_CONF=$default part pairs-denied 150 python3 "$here/module.py" --denied pairs &
PYTORCH_CUDA_ALLOC_CONF=$segments part pairs-segments-denied 150 python3 "$here/module.py" --denied pairs &
part example-torch 100 python3 "$here/share_tensor.py" torch &
part example-cupy 100 python3 "$here/share_tensor.py" cupy &
wait
report pairs-default pairs-segments pairs-denied pairs-segments-denied example-torch example-cupy
part memory 100 python3 "$here/module.py" memory
report memory
for whom in consumers producers; do
    part "killed-$whom" $((seconds + 60)) python3 "$here/kills.py" $whom "$kills" --device cuda --lanes 12 --seconds "$seconds"
    report "killed-$whom"
done
PYTORCH_CUDA_ALLOC_CONF=$default part costs-default 200 python3 "$here/module_costs.py" "$rounds"
report costs-default
PYTORCH_CUDA_ALLOC_CONF=$segments part costs-segments 200 python3 "$here/module_costs.py" "$rounds"
report costs-segments
if [ -x "$here/bin/calls" ]; then
    part calls-cpu 60 python3 "$here/calls.py" "$here/bin/calls" 2000
    part calls-cuda 60 python3 "$here/calls.py" "$here/bin/calls" 2000 cuda
    report calls-cpu calls-cuda
fi

echo "=== figures"
cat "$results"/costs-*.txt "$results"/calls-*.txt 2>/dev/null | grep -E '^(PASS|MISS) '
echo "=== parts, in $SECONDS s"
printf %s "$lines"
exit "$failures"
