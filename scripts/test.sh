#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks what must hold before a change goes in, on a fresh Debian 12 machine or an old one:
#
#   scripts/test.sh               release: g++, no warnings, every test
#   scripts/test.sh sanitizers    asan: clang++, no warnings, address and undefined-behaviour
#                                 sanitizers, every unit test but long ones that others resemble
#   scripts/test.sh python        the Python module, its types, its notebooks and its wheel
#   scripts/test.sh web           WebAssembly beside the program, the planner, npm's package
#
# The continuous integration runs the first two, and the workflow of a release the others. Each
# installs the packages that are missing, and ends with the files that took longest to compile and
# the tests that took longest to run. A test that was skipped fails the run unless
# tests/may_be_skipped.txt says why.
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
case "${1:-}" in
  "") preset=release ;;
  sanitizers) preset=asan ;;
  python) preset=python ;;
  web) preset=web ;;
  -h | --help) print_help; exit 0 ;;
  *) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp -t stepcast-test.XXXXXX)
trap 'rm -f "$log"' EXIT

# Ninja has noted of every file when it was compiled last: milliseconds from and to.
seconds_of_files() {
  awk -F '\t' '!/^#/ { took[$4] = $2 - $1 }
                END { for (file in took) printf "%7.1f s  %s\n", took[file] / 1000, file }' \
    "build/$preset/.ninja_log" |
    sed -E 's#  .*CMakeFiles/([^/]+)[.]dir/Unity/unity_([0-9]+)_.*#  files of \1, part \2#
            s#(CMakeFiles/[^/]+\.dir/|[.]o$)##g'
}

seconds_of_tests() {
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*/\2 \1/p' "$log" |
    awk '{ printf "%7.1f s  %s\n", $1, $2 }'
}

ten_slowest() {
  sort -rn | sed -n 1,10p
}

scripts/install-deps.sh --all
if [[ $preset == web ]]; then scripts/install-deps.sh --web; fi
echo "== $preset: build"
if [[ $preset == web ]]; then
  scripts/build.sh release stepcast hunt_scenarios  # whose answers are compared
  scripts/build-web.sh
else
  scripts/build.sh "$preset"
fi
built=$SECONDS
echo "== $preset: test"
ctest --preset "$preset" --parallel "$(nproc)" | tee "$log"
echo "== $preset: what took longest to compile"
seconds_of_files | ten_slowest
echo "== $preset: what took longest to test"
seconds_of_tests | ten_slowest
tests/scripts/unexplained_skips.py "$log"
echo "== $preset: $(grep 'tests passed' "$log")"
echo "== passed in $((SECONDS / 60)) min $((SECONDS % 60)) s, of them $((built / 60)) min" \
  "$((built % 60)) s to build"
