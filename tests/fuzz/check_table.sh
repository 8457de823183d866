#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The targets that the program lists are those that the tests run, and their dictionaries exist and
# are such as libFuzzer reads: it refuses to begin with a word that is not on one line.
#
#   check_table.sh PROGRAM NAME,NAME,...
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
listed=$("$1" --list)
if [[ $(cut -d' ' -f1 <<<"$listed" | sort) != $(tr , '\n' <<<"$2" | sort) ]]; then
  echo "the table of targets.cpp and the lists of tests/fuzz/CMakeLists.txt differ" >&2
  exit 1
fi
while read -r name _ dictionary; do
  [[ -f $here/dictionaries/$dictionary.dict ]] || {
    echo "$name: there is no tests/fuzz/dictionaries/$dictionary.dict" >&2
    exit 1
  }
done <<<"$listed"
word='([]!#-[^-~ ]|\\["\\]|\\x[0-9A-F]{2})+'
if LC_ALL=C grep -nvE "^\"$word\"\$" "$here"/dictionaries/*.dict >&2; then
  echo "a line of a dictionary is one word in double quotes, with \\\\, \\\" and \\x0A in it" >&2
  exit 1
fi
