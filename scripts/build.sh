#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds a preset of CMakePresets.json.
#
#   scripts/build.sh [PRESET [TARGET...]]     default: release, everything
#   scripts/build.sh programs                 the same without tests and what they need
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
case "${1:-}" in
  -h | --help) print_help; exit 0 ;;
  -*) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-release}
shift || true
cmake --preset "$preset" --log-level=WARNING
cmake --build --preset "$preset" ${1:+--target "$@"}
