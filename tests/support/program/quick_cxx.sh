#!/bin/sh
# The compiler for RTL of a test: it runs for a few cycles and is not worth optimising.
exec "$(command -v clang++ || echo c++)" "$@" -O0
