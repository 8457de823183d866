#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails every call to the system that 26 commands make, one at a time, and looks at how each of
# them takes it (docs/design/013-faults-at-the-system.md). The tests try a sample; this takes hours.
#
#   scripts/sweep-faults.sh [FLAGS OF tests/faults/sweep.py]
#   scripts/sweep-faults.sh --kind write --kind sync --kind rename     some kinds of calls
#   scripts/sweep-faults.sh --command validate                         some commands
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
case "${1:-}" in
  -h | --help) print_help; exit 0 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python3 -B tests/faults/sweep.py --build build/release --all "$@"
