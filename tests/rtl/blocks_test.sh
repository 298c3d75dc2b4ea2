#!/usr/bin/env bash
# Are all tests of each RTL block in the table of script/test_rtl, and does a run that has not tested
# what was meant fail?
# usage: tests/rtl/blocks_test.sh PROGRAM
set -euo pipefail
program=$(realpath "${1:?usage: tests/rtl/blocks_test.sh PROGRAM}")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

read -ra blocks < <(make -s --no-print-directory -f Makefile.verilator blocks)
[ "${#blocks[@]}" -ge 16 ] || { echo "blocks of Makefile.verilator: ${blocks[*]}" >&2; exit 1; }
script/test_rtl "$program" check "${blocks[@]}"

# ------------------------------------------------------------------------------ runs that fail
# Expects that a command fails with $1 as its only line on standard error.
expect_error() {
  local expected=$1
  shift
  if "$@" >"$work/out" 2>"$work/err"; then
    echo "expected a failure: $*" >&2
    exit 1
  fi
  [ "$(<"$work/err")" = "$expected" ] ||
    { printf 'expected: %s\nfound:    %s\n' "$expected" "$(<"$work/err")" >&2; exit 1; }
}

# A program with one value test, which is skipped, and one other test, which passes.
cat >"$work/program" <<'END'
#!/usr/bin/env bash
case "$*" in
  *list_tests*Nothing*) ;;
  *list_tests*) printf 'Lanes/Unit.\n  Values/0  # GetParam() = 4\n  Cycles/0\n' ;;
  *Values*:-*) ;;
  *filter=*Values*) echo '[  PASSED  ] 0 tests.' ;;
  *) echo '[  PASSED  ] 1 test.' ;;
esac
END
chmod +x "$work/program"
export SYSTOLE_RTL_TESTS=$work/table
printf '== unit\nvalues: Lanes/Unit.Values*\nothers: Lanes/Unit.*\n' >"$work/table"
script/test_rtl "$work/program" filter 'Lanes/Unit.Cycles*' >/dev/null
expect_error 'test_rtl: unit: none of its value tests ran' script/test_rtl "$work/program" block unit
expect_error 'test_rtl: FILTER=Nothing*: no test matches' \
  script/test_rtl "$work/program" filter 'Nothing*'
expect_error "test_rtl: other: no value tests in $work/table" \
  script/test_rtl "$work/program" block other
printf '== unit\nvalues: Lanes/Unit.Values* Nothing*\nothers: Lanes/Unit.*\n' >"$work/table"
expect_error "test_rtl: unit: no test matches Nothing* ($work/table)" \
  script/test_rtl "$work/program" block unit
