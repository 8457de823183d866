#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that must hold before a change goes in, on a fresh Debian 12 machine or an old one:
#
#   scripts/test.sh                       both of these, in turn
#   STEPCAST_TEST=quick scripts/test.sh   the first alone
#
#   1. release: g++, no warnings, every test
#   2. asan:    clang++, no warnings, address and undefined-behaviour sanitizers, every unit test
#               but the largest searches, which take minutes there
#
# After each it prints which files took longest to compile, and which tests to run.
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
case "${1:-}" in
  "") ;;
  -h | --help) print_help; exit 0 ;;
  *) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp -t stepcast-test.XXXXXX)
trap 'rm -f "$log"' EXIT
closing_lines=()

# What Ninja has noted of every file when it was compiled last: milliseconds from and to.
seconds_of_files() {
  awk -F '\t' '!/^#/ { took[$4] = $2 - $1 }
                END { for (file in took) printf "%7.1f s  %s\n", took[file] / 1000, file }' \
    "build/$1/.ninja_log" | sed -E 's#(CMakeFiles/[^/]+\.dir/|[.]o$)##g'
}

seconds_of_tests() {
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*/\2 \1/p' "$log" |
    awk '{ printf "%7.1f s  %s\n", $1, $2 }'
}

ten_slowest() {
  sort -rn | sed -n 1,10p
}

build_and_test() {
  local preset=$1
  echo "== $preset: build"
  scripts/build.sh "$preset"
  echo "== $preset: test"
  ctest --preset "$preset" --parallel "$(nproc)" | tee "$log"
  echo "== $preset: what took longest to compile"
  seconds_of_files "$preset" | ten_slowest
  echo "== $preset: what took longest to test"
  seconds_of_tests | ten_slowest
  closing_lines+=("$(printf '%-8s %s' "$preset" "$(grep 'tests passed' "$log")")")
}

scripts/install-deps.sh
build_and_test release
if [[ ${STEPCAST_TEST:-all} != quick ]]; then
  build_and_test asan
fi

echo "== passed in $((SECONDS / 60)) min $((SECONDS % 60)) s"
printf '%s\n' "${closing_lines[@]}"
