#!/usr/bin/env bash
# Installs the build, moves what was installed, runs the program from there, and builds and runs examples/
# with it. Needs nothing of the source tree but examples/.
# usage: install_test.sh BUILD EXAMPLES
set -euo pipefail
build=$1 examples=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install_test: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/moved"
unset SYSTOLE_DATA
printf 'base = "tiny"\n' >"$work/moved/share/systole/traces/machines/moved.toml"
cd "$work"
moved/bin/systole machine | grep -q '^moved ' || fail "the program does not use the data beside it"
moved/bin/systole run -m moved --model vit17 -n 1 --check --report run.html | grep -q ' 0 mismatches' ||
  fail "a run from the installed program"
[ -s run.html ] || fail "no report"

export SYSTOLE_DATA=$work/moved/share/systole/traces
cmake -S "$examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/build" -j2 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for latency in 0 50 200; do
  build/own_memory $latency >"own$latency" || fail "own_memory $latency: $(cat "own$latency")"
  grep -o '[0-9]* cycles' "own$latency" | cut -d' ' -f1 >>cycles
done
sort -n -c cycles || fail "a slower memory takes fewer cycles: $(tr '\n' ' ' <cycles)"
[ "$(head -1 cycles)" -lt "$(tail -1 cycles)" ] || fail "the memory does not matter"
alone=$(grep -o '[0-9]* cycles' own50 | cut -d' ' -f1)
build/two_cores >two || fail "two_cores: $(cat two)"
grep -q 'first_cpu: .* as expected' two && grep -q 'second_cpu: .* as expected' two || fail "$(cat two)"
first=$(sed -n 's/^first_cpu: \([0-9]*\) .*/\1/p' two)
[ "$first" -gt "$alone" ] || fail "a second core costs the first nothing: $first cycles, alone $alone"
grep -q '^[1-9][0-9]* bus cycles of waiting' two || fail "no contention: $(cat two)"
