#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the program and shows what it answers: two forecasts, and how far forecasts of recorded
# runs were off. Needs no GPU and no network.
#
#   scripts/demo.sh
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
case "${1:-}" in
  "") ;;
  -h | --help) print_help; exit 0 ;;
  *) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-deps.sh --build
scripts/build.sh programs stepcast
stepcast=build/release/stepcast

show() {
  printf '\n$ %s\n' "$*"
  "$@"
}

show $stepcast check megatron-a100 --format table

show $stepcast predict --model gpt3-175b --cluster dgx-a100-80gx128 \
  --global-batch 1536 --seq 2048 --tp 8 --pp 8 --micro-batch 1

show $stepcast predict --model llama-3.1-70b --cluster dgx-h100x8 \
  --global-batch 512 --seq 8192 --tp 8 --pp 4 --micro-batch 1

printf '\nThe program is %s. To call it by its name:\n  export PATH="%s:$PATH"\n' \
  "$stepcast" "$PWD/build/release"
