#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the planner for browsers and the npm package by Debian's emscripten (install-deps --web).
#
#   scripts/build-web.sh    build/web/planner.html, one file that opens from a disk or any host,
#                           and build/web/stepcast-VERSION.tgz, for `npx`
#   scripts/build-web.sh --quick
#                           both in less time, for tests: larger files, and slower ones
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
quick=OFF
case "${1:-}" in
  "") ;;
  --quick) quick=ON ;;
  -h | --help) print_help; exit 0 ;;
  *) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Debian has the linker's JavaScript packages here, which a node from elsewhere does not look at.
export NODE_PATH=/usr/share/nodejs${NODE_PATH:+:$NODE_PATH}
if command -v ccache > /dev/null; then
  export EM_COMPILER_WRAPPER=ccache
fi
cmake --preset web --log-level=WARNING -DSTEPCAST_QUICK_WEB=$quick
cmake --build --preset web
for file in build/web/planner.html build/web/stepcast-*.tgz; do
  echo "$file: $(stat -c %s "$file") bytes, $(gzip -9 -c "$file" | wc -c) compressed"
done
