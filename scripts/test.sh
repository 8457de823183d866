#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that must hold before a change goes in, on a fresh Debian 12 machine or an old one:
#
#   1. release: g++, no warnings, every test
#   2. asan:    clang++, no warnings, address and undefined-behaviour sanitizers, every unit test
#               but the largest searches, which take minutes there
#
# STEPCAST_TEST=quick stops after the first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp -t stepcast-test.XXXXXX)
trap 'rm -f "$log"' EXIT
closing_lines=()

build_and_test() {
  local preset=$1
  echo "== $preset: build"
  scripts/build.sh "$preset"
  echo "== $preset: test"
  ctest --preset "$preset" --parallel "$(nproc)" | tee "$log"
  closing_lines+=("$(printf '%-8s %s' "$preset" "$(grep 'tests passed' "$log")")")
}

scripts/install-deps.sh
build_and_test release
if [[ ${STEPCAST_TEST:-all} != quick ]]; then
  build_and_test asan
fi

echo "== passed in $((SECONDS / 60)) min $((SECONDS % 60)) s"
printf '%s\n' "${closing_lines[@]}"
