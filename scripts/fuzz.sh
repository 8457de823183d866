#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Feeds mutated files to the readers of tests/fuzz, as long as you like, and sums up the runs.
#
#   scripts/fuzz.sh [--runs N | --minutes N] [--jobs N] [TARGET...]
#
# Without a target all take their turn; N runs or minutes are of each target (default: one minute).
# What finds new ways through the code is kept in build/fuzz/corpus for the next time, and an input
# that ends a reader in build/fuzz/findings. `fuzz_targets --list` prints the targets. The exit code
# is 1 when there is a finding, or a target could not begin.
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
limit=-max_total_time=60
jobs=1
targets=()
while (($# > 0)); do
  case $1 in
    -h | --help) print_help; exit 0 ;;
    --runs) limit=-runs=${2:?--runs takes a number}; shift ;;
    --minutes) limit=-max_total_time=$((${2:?--minutes takes a number} * 60)); shift ;;
    --jobs) jobs=${2:?--jobs takes a number}; shift ;;
    -*) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh fuzz fuzz_targets
program=build/fuzz/tests/fuzz/fuzz_targets
findings=build/fuzz/findings
ended=build/fuzz/ended.txt  # targets that ended before their time, also those that never began
mkdir -p build/fuzz/logs "$findings"
: >"$ended"
table=$("$program" --list)
((${#targets[@]} > 0)) || mapfile -t targets < <(cut -d' ' -f1 <<<"$table")

fuzz_one() {
  local target=$1 most dictionary
  read -r _ most dictionary < <(grep "^$target " <<<"$table") || {
    echo "$0: there is no target '$target'" >&2
    return 2
  }
  mkdir -p "build/fuzz/corpus/$target"
  "$program" "--target=$target" "$limit" -max_len="$most" -timeout=25 -rss_limit_mb=4096 \
    -dict="tests/fuzz/dictionaries/$dictionary.dict" -artifact_prefix="$findings/$target-" \
    -print_final_stats=1 "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" \
    >"build/fuzz/logs/$target.log" 2>&1 || {
    echo "$target: ended before its time, see build/fuzz/logs/$target.log and $findings"
    echo "$target" >>"$ended"
  }
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/logs/$target.log")
  echo "$target ${runs:-0}" | tee -a build/fuzz/runs.txt
}

for target in "${targets[@]}"; do
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
  fuzz_one "$target" &
done
wait
awk '{ sum += $2 } END { print sum " runs so far, by build/fuzz/runs.txt" }' build/fuzz/runs.txt
left=$(find "$findings" -type f | wc -l)
echo "$left findings"
((left == 0)) && [[ ! -s $ended ]]
