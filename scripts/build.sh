#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds a preset of CMakePresets.json.
#
#   scripts/build.sh [PRESET [TARGET...]]     default: release, everything
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-release}
shift || true
cmake --preset "$preset" --log-level=WARNING
cmake --build --preset "$preset" ${1:+--target "$@"}
