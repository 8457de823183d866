#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes what the program prints into the examples of the documents. Review the difference.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh release stepcast
mapfile -t documents < <(find README.md docs -name '*.md' | sort)
python3 -B tests/docs/examples.py --bin build/release --update "${documents[@]}"
