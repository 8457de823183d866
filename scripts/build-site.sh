#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the site of the documentation, for a disk or any static host. It asks no other host for
# anything, and every link within it is checked.
#
#   scripts/build-site.sh     into build/site/html
#
# Needs Debian's mkdocs and mkdocs-material (scripts/install-deps.sh --all).
set -euo pipefail

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }
case "${1:-}" in
  "") ;;
  -h | --help) print_help; exit 0 ;;
  *) echo "$0: takes no '$1' (see --help)" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v mkdocs >/dev/null || {
  echo "$0: mkdocs is missing: scripts/install-deps.sh --all" >&2
  exit 1
}
site/lay_out.py . build/site/source
mkdocs build --quiet --strict --clean --config-file site/mkdocs.yml
site/check_links.py build/site/html
echo "build/site/html/index.html: $(find build/site/html -name '*.html' | wc -l) pages"
