#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks what must hold before a change goes in, on a fresh Debian 12 machine or an old one:
#
#   scripts/test.sh               both of these, one after the other:
#   scripts/test.sh sanitizers      asan: clang++, no warnings, unit tests of all layers with
#                                   address and undefined-behaviour sanitizers
#   scripts/test.sh release         release: g++, no warnings, tests that start programs or take
#                                   long, and the Python module with its notebooks and its wheel
#   scripts/test.sh python        that module alone
#   scripts/test.sh web           WebAssembly beside the program, the planner, npm's package
#   scripts/test.sh web-packages  the same of what a release carries, which takes longer to build
#
# The continuous integration runs the first, and "web". Each installs the packages that are
# missing, and ends with the files that took longest to compile and the tests that took longest to
# run. A test that was skipped fails the run unless tests/may_be_skipped.txt says why.
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
web_form=(--quick)
case "${1:-}" in
  "") presets=(asan release) ;;
  sanitizers) presets=(asan) ;;
  release | python | web) presets=("$1") ;;
  web-packages) presets=(web) web_form=() ;;
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
    "build/$1/.ninja_log" | sed -E 's#(CMakeFiles/[^/]+\.dir/|batches/|[.]o$)##g'
}

ten_slowest() {
  sort -rn | sed -n 1,10p
}

build_and_test() {
  local preset=$1 began=$SECONDS built
  echo "== $preset: build"
  if [[ $preset == web ]]; then
    scripts/build.sh release stepcast hunt_scenarios  # whose answers are compared
    scripts/build-web.sh "${web_form[@]}"
  else
    scripts/build.sh "$preset"
  fi
  built=$((SECONDS - began))
  echo "== $preset: test"
  rm -rf "build/$preset/results"
  ctest --preset "$preset" --parallel "$(nproc)" | tee "$log"
  echo "== $preset: what took longest to compile"
  seconds_of_files "$preset" | ten_slowest
  echo "== $preset: what took longest to test"
  tests/scripts/test_results.py --log "$log" --results "build/$preset/results"
  echo "== $preset: passed in $(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s," \
    "of them $((built / 60)) min $((built % 60)) s to build"
}

scripts/install-deps.sh --all
if [[ ${presets[0]} == web ]]; then scripts/install-deps.sh --web; fi
for preset in "${presets[@]}"; do
  build_and_test "$preset"
done
