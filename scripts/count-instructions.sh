#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts the instructions of whole commands under callgrind, whose counts do not depend on what else
# the machine does, and sets them beside those of bench/instructions.txt:
#
#   scripts/count-instructions.sh [PROGRAM]           fails where one has grown by more than 3 %
#   scripts/count-instructions.sh --update [PROGRAM]  writes the file's counts anew
#
# PROGRAM is build/release/stepcast unless stated. Counts are those of one compiler: where PROGRAM
# comes from another, or valgrind is not installed, the script says so and ends with 77.
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
update=false
case "${1:-}" in
  -h | --help) print_help; exit 0 ;;
  --update) update=true; shift ;;
  -*) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
program=$(realpath "${1:-build/release/stepcast}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
table=bench/instructions.txt

if ! command -v valgrind >/dev/null; then
  echo "skipped: valgrind is not installed"
  exit 77
fi
# "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0", as the compiler signs its objects.
compiler=$(readelf -p .comment "$program" | sed -nE 's/^ *\[ *[0-9a-f]+\] *//p' |
  sort -u | head -n 1)
counted_with=$(sed -n 's/^compiler: //p' "$table")
if ! $update && [[ $compiler != "$counted_with" ]]; then
  echo "skipped: counts are of '$counted_with', and $program is of '$compiler'"
  exit 77
fi

scratch=$(mktemp -d -t stepcast-count.XXXXXX)
trap 'rm -rf "$scratch"' EXIT

# In an empty environment, whose size would count, too, and with the data inside the program: in a
# folder it is text. 3 is an answer: the layout does not fit.
count() {
  local status=0
  env -i valgrind --tool=callgrind --callgrind-out-file="$scratch/out" "$program" "$@" \
    --data shipped: --format json -o "$scratch/answer" 2>"$scratch/log" || status=$?
  if ((status != 0 && status != 3)); then
    cat "$scratch/log" >&2
    return 1
  fi
  sed -nE 's/.*Collected : ([0-9]+).*/\1/p' "$scratch/log"
}

grown=0
{
  $update && echo "compiler: $compiler"
  while read -r before words; do
    read -ra arguments <<<"$words"
    now=$(count "${arguments[@]}")
    $update && printf '%s %s\n' "$now" "$words"
    awk -v now="$now" -v before="$before" -v words="$words" 'BEGIN {
      printf "%8.1f million, %+.1f %%: %s\n", now / 1e6, 100 * (now / before - 1), words
      exit now > 1.03 * before }' >&2 || grown=1
  done < <(grep -v '^compiler: ' "$table")
} >"$scratch/table"
if $update; then
  cp "$scratch/table" "$table"
elif ((grown)); then
  echo "a command has grown by more than 3 %: find out why, or write the file with --update" >&2
  exit 1
fi
