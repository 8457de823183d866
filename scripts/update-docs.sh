#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes what the program prints into the examples of the documents. Review the difference.
#
#   scripts/update-docs.sh
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
case "${1:-}" in
  "") ;;
  -h | --help) print_help; exit 0 ;;
  *) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh release stepcast
mapfile -t documents < <(find README.md docs -name '*.md' | sort)
python3 -B tests/docs/examples.py --bin build/release --update "${documents[@]}"
