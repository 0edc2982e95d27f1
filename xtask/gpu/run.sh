#!/usr/bin/env bash
# Runs what `cargo xtask gpu-bundle` packed, on a machine with a GPU: ./run.sh [STEP]...
# Each step can be run alone and again; its output lies in results/STEP.txt. Exit status: how many
# steps failed. What a machine lacks is said, and the step says "skipped".
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=${RESULTS:-$here/results}
mkdir -p "$results"
backend=${BACKEND:-cuda}
adapter=$here/dist/$backend/libur_adapter_$backend.so.0
export LD_LIBRARY_PATH=$here/dist:$here/dist/$backend:$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export CAUSEWAY_CUDA=real CAUSEWAY_CUDA_ADAPTER=$adapter CAUSEWAY_CONFORMANCE=$here/bin/ur-conformance
export CAUSEWAY_TESTDATA=$here/tests RUST_BACKTRACE=1
all="facts devices tests suite demo share sycl python module capture segments sanitizer bench"

facts() {
    uname -srm
    if [ "$(uname -r)" = 4.4.0 ]; then
        echo "kernel: gVisor; claims about namespaces, ptrace and sanitizers do not count from here"
    else
        echo "kernel: not gVisor"
    fi
    nvidia-smi --query-gpu=index,name,uuid,driver_version,memory.total --format=csv,noheader
    date -u +%F
    id -un
}
devices() { "$here/bin/causeway" devices; }
tests() {
    local failed=0
    for test in "$here"/tests/*; do
        [ -x "$test" ] && [ ! -d "$test" ] || continue
        [ "$(basename "$test")" != sycl ] || continue # a step of its own
        echo "== $(basename "$test")"
        # One at a time: the driver calls the host functions of a context one after the other, and the
        # gates of one test would hold up another's. The suite is a step of its own.
        timeout 240 "$test" --test-threads 1 --skip the_adapter_passes_every_case || failed=1
    done
    return $failed
}
suite() {
    # The driver calls the host functions of a context one after the other, so that case, in which two hold up
    # queues while a third is to run, cannot end.
    timeout 420 "$here/bin/ur-conformance" --adapter "$adapter" -j "${JOBS:-8}" \
        --but ": a wait and a function of an out-of-order queue" \
        --json "$results/suite.json" --html "$results/suite.html"
}
demo() { timeout 120 "$here/bin/causeway" demo --backend "$backend"; }
# A file of SHARE_GIB GiB, shared by one process and hashed by another.
share() {
    local gib=${SHARE_GIB:-16} file ticket
    file=$(mktemp -p "${TMPDIR:-/tmp}" causeway.XXXXXX)
    fallocate -l "${gib}GiB" "$file" && printf 'first' | dd of="$file" conv=notrunc status=none
    printf 'last' | dd of="$file" bs=1 seek=$((gib * 1073741824 - 4)) conv=notrunc status=none
    coproc sharer { exec "$here/bin/causeway" share "$file" --once --backend "$backend"; }
    local pid=$sharer_PID
    read -r ticket <&"${sharer[0]}" || { rm -f "$file"; return 1; }
    local begun=$SECONDS
    local hash; hash=$("$here/bin/causeway" open "$ticket" --hash --backend "$backend") || { kill "$pid"; rm -f "$file"; return 1; }
    echo "opened, copied and hashed ${gib} GiB in $((SECONDS - begun)) s"
    wait "$pid"
    local true; true=$(sha256sum <"$file")
    rm -f "$file"
    [ "${hash%% *}" = "${true%% *}" ] && echo "the same SHA-256: ${hash%% *}" || { echo "DIFFERENT: $hash, $true"; return 1; }
}
# Programs for the unmodified SYCL runtime; the adapter is found by its name.
sycl() {
    local failed=0 program
    export UR_ADAPTERS_SEARCH_PATH=$here/dist/$backend ONEAPI_DEVICE_SELECTOR="$backend:*"
    # What is refused on purpose is said in the log, a line each: only the end of it is kept.
    for program in each usm virtual_memory queues buffers surface surface-20 garbage; do
        [ -x "$here/sycl/$program" ] || { echo "skipped: $program was not packed"; continue; }
        echo "== $program"
        timeout 100 "$here/sycl/$program" 2>"$results/sycl.log" || { echo "FAILED: $program ($?)"; tail -5 "$results/sycl.log"; failed=1; }
    done
    rm -f "$results/sycl.log"
    echo "== producer and consumer"
    local pipes; pipes=$(mktemp -d)
    mkfifo "$pipes/there" "$pipes/back"
    timeout 100 "$here/sycl/consumer" "$pipes/there" "$pipes/back" & local consumer=$!
    timeout 100 "$here/sycl/producer" "$pipes/there" "$pipes/back" || { echo "FAILED: producer ($?)"; failed=1; }
    wait "$consumer" || { echo "FAILED: consumer ($?)"; failed=1; }
    rm -r "$pipes"
    unset UR_ADAPTERS_SEARCH_PATH ONEAPI_DEVICE_SELECTOR
    return $failed
}
# Tensors of PyTorch and CuPy, which know nothing of this project, read and written by another process.
python() {
    local failed=0
    command -v python3 >/dev/null || { echo "skipped: there is no python3"; return 0; }
    timeout 150 python3 "$here/share_tensor.py" "$adapter" torch || failed=1
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True timeout 150 python3 "$here/share_tensor.py" "$adapter" torch || failed=1
    timeout 150 python3 "$here/share_tensor.py" "$adapter" cupy || failed=1
    return $failed
}
# The Python module, from its wheel: arrays and events of PyTorch, CuPy and NumPy between processes, and what they cost.
module() {
    command -v python3 >/dev/null || { echo "skipped: there is no python3"; return 0; }
    RESULTS=$results/module "$here/module/python.sh"
}
# PyTorch's graph captures in every mode while another thread works through us.
capture() {
    command -v python3 >/dev/null || { echo "skipped: there is no python3"; return 0; }
    timeout 200 python3 "$here/torch_capture.py" "$adapter" "${CAPTURES:-50}"
}
# Tensors of PyTorch that lie on many physical allocations, whole in another process.
segments() {
    command -v python3 >/dev/null || { echo "skipped: there is no python3"; return 0; }
    timeout 200 python3 "$here/torch_segments.py" "$adapter"
}
# What runs in one process, under the driver vendor's checker; SANITIZE says a part of it.
sanitizer() {
    command -v compute-sanitizer >/dev/null || { echo "skipped: there is no compute-sanitizer"; return 0; }
    [ "$(uname -r)" != 4.4.0 ] || { echo "skipped: the kernel is gVisor"; return 0; }
    # Under the checker a copy within the device that waits holds up every other stream, also where the driver
    # alone is called: cases in which one queue waits for another behind a gate may not end.
    timeout 460 compute-sanitizer --report-api-errors no --target-processes all --error-exitcode 9 --launch-timeout 60 \
        "$here/bin/ur-conformance" --adapter "$adapter" -j 4 --filter "${SANITIZE:-}" --but ipc_ \
        --but ": a command that waits is complete" --but ": what waits for an event in error"
}
bench() { timeout 420 "$here/bin/bench" --bench; }

cd "$here" || exit 1
facts | tee "$results/facts.txt"
failures=0
for step in ${*:-$all}; do
    [ "$step" != facts ] || continue
    echo "=== $step"
    begun=$SECONDS
    if "$step" 2>&1 | tee "$results/$step.txt" && [ "${PIPESTATUS[0]}" = 0 ]; then
        echo "=== $step: passed in $((SECONDS - begun)) s"
    else
        echo "=== $step: FAILED after $((SECONDS - begun)) s"
        failures=$((failures + 1))
    fi
done
exit "$failures"
