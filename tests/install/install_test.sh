#!/usr/bin/env bash
# Installs the build, moves what was installed, runs the program from there, and builds and runs examples/
# with it. Needs nothing of the source tree but examples/.
# usage: install_test.sh BUILD EXAMPLES
set -euo pipefail
build=$1 examples=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install_test: $*" >&2; exit 1; }
# What went wrong is in a file.
fail_with() { cat "$1" >&2; fail "${2:-$1}"; }

cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || fail_with "$work/log" "cmake --install"
mv "$work/first" "$work/moved"
unset SYSTOLE_DATA
printf 'base = "tiny"\n' >"$work/moved/share/systole/traces/machines/moved.toml"
cd "$work"
moved/bin/systole machine | grep -q '^moved ' || fail "the program does not use the data beside it"
moved/bin/systole run -m moved --model vit17 -n 1 --check --report run.html | grep -q ' 0 mismatches' ||
  fail "a run from the installed program"
[ -s run.html ] || fail "no report"
moved/bin/systole doctor >health || fail_with health
grep -q "comes with *$(pwd -P)/moved/share/systole" health || fail_with health

cp -r "$examples/own_rtl/requantizer" own
moved/bin/systole rtl add own >"$work/log" 2>&1 || fail_with "$work/log" "systole rtl add"
moved/bin/systole matmul 9x10x11 -m tiny --rtl requantizer=own >"$work/log" 2>&1 ||
  fail_with "$work/log" "a run with RTL of one's own"
grep -q "^requantizer ($work/own) .* 0\$" "$work/log" || fail_with "$work/log" "mismatches"

page=moved/share/man/man1/systole.1
for command in $(moved/bin/systole --help | awk '/^Subcommands:/ {on = 1; next} on && /^  / {print $1}'); do
  grep -q "^\.SH SYSTOLE ${command^^}\$" $page || fail "the manual page has no command $command"
done
# complete WORDS...: what the shell offers for the last of them
complete_words() {
  PATH=$PWD/moved/bin:$PATH bash -c '
    . moved/share/bash-completion/completions/systole
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _systole
    echo "${COMPREPLY[*]}"' bash "$@"
}
[ "$(complete_words systole expl)" = explain ] || fail "no completion of commands"
[ "$(complete_words systole run -m transf)" = transformer ] || fail "no completion of machines"
[ "$(complete_words systole run --model vit1)" = "vit17 vit17-post" ] || fail "no completion of models"
[ "$(complete_words systole run --func)" = --functional ] || fail "no completion of options"

export SYSTOLE_DATA=$work/moved/share/systole/traces
# One of them once more, with a socket that nobody binds.
cp -r "$examples" users
sed '/bus.connect_initiator(cpu.socket);/d' users/own_memory.cpp >users/unbound.cpp
cmp -s users/own_memory.cpp users/unbound.cpp && fail "nothing is bound in own_memory.cpp"
sed -i 's/foreach(example own_memory/& unbound/' users/CMakeLists.txt
# They are small: optimised they take longer to compile than they save.
cmake -S users -B build -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
  >"$work/log" 2>&1 || fail_with log "examples: cmake"
cmake --build build -j2 >"$work/log" 2>&1 || fail_with log "examples: build"
for latency in 0 50 200; do
  build/own_memory $latency >"own$latency" || fail_with "own$latency"
  grep -o '[0-9]* cycles' "own$latency" | cut -d' ' -f1 >>cycles
done
sort -n -c cycles || fail "a slower memory takes fewer cycles: $(tr '\n' ' ' <cycles)"
[ "$(head -1 cycles)" -lt "$(tail -1 cycles)" ] || fail "the memory does not matter"
alone=$(grep -o '[0-9]* cycles' own50 | cut -d' ' -f1)
for piece in 0 16 256; do
  build/own_dma $piece >"dma$piece" || fail_with "dma$piece"
done
# Systole's own DMA, larger pieces, smaller pieces.
for piece in 0 256 16; do cut -d' ' -f1 "dma$piece"; done | sort -n -c ||
  fail "a DMA that asks for less at a time takes fewer cycles: $(cat dma0 dma256 dma16)"
[ "$(cut -d' ' -f1 dma0)" -lt "$(cut -d' ' -f1 dma16)" ] || fail "the DMA does not matter"
build/two_cores >two || fail_with two
[ "$(grep -c '_cpu: .* as expected' two)" -eq 2 ] || fail_with two
first=$(sed -n 's/^first_cpu: \([0-9]*\) .*/\1/p' two)
[ "$first" -gt "$alone" ] || fail "a second core costs the first nothing: $first cycles, alone $alone"
grep -q '^[1-9][0-9]* bus cycles of waiting' two || fail_with two "no contention"

# The socket that nobody bound is named in one line.
code=0
build/unbound >unbound_out 2>unbound_error || code=$?
[ "$code" -eq 2 ] || fail_with unbound_error "an unbound socket: exit code $code"
[ "$(grep -v '^$' unbound_error)" = "initiator socket 'socket' of module 'system.cpu' is bound to nothing, expected a target, or SystemBus::connect_initiator()" ] ||
  fail_with unbound_error "an unbound socket"
