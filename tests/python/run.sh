#!/usr/bin/env bash
# Tests of the converters, with $SYSTOLE_PYTHON or python3. Exit code 77, which is a skipped test, where
# their libraries are not installed.
set -euo pipefail
cd "$(dirname "$0")"

python=${SYSTOLE_PYTHON:-python3}
for library in pytest numpy; do
  if ! "$python" -c "import $library" 2>/dev/null; then
    echo "NOT TESTED: $python has no $library: pip install -r python/systole_convert/requirements.txt"
    exit 77
  fi
done
exec "$python" -m pytest -q -rs -p no:cacheprovider .
