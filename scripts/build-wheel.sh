#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python module and packs it as a wheel, which carries the data that ships and needs no
# network to build or to install.
#
#   scripts/build-wheel.sh [FOLDER]     into FOLDER; build/python/dist unless it is given
#   PYTHON=python3.12 scripts/build-wheel.sh     for another Python: builds the module anew
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
case "${1:-}" in
  -h | --help) print_help; exit 0 ;;
  -*) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
folder=$(realpath -m "${1:-$(dirname "${BASH_SOURCE[0]}")/../build/python/dist}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=$(command -v "${PYTHON:-python3}")
cmake --preset python --log-level=WARNING -DPython3_EXECUTABLE="$python" >&2
cmake --build --preset python >&2
stage=$(mktemp -d -t stepcast-wheel.XXXXXX)
trap 'rm -rf "$stage"' EXIT
cmake --install build/python --component python --prefix "$stage" --strip >/dev/null
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/python/CMakeCache.txt)
"$python" bindings/python/pack_wheel.py "$stage" --version "$version" --readme docs/python.md \
  --license LICENSE --output "$folder"
