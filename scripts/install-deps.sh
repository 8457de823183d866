#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that stepcast needs and that are missing. Changes nothing else, and
# nothing at all when all are there.
#
#   scripts/install-deps.sh           build, tests, benchmarks, both compilers
#   scripts/install-deps.sh --all     also every program that a test can use: a browser, shellcheck
#   scripts/install-deps.sh --web     and the compiler of the planner for browsers
#   scripts/install-deps.sh --build   only what the program itself needs
set -euo pipefail

build_packages=(
  g++ cmake ninja-build
  mold                   # links in a moment
  libfmt-dev             # text
  nlohmann-json3-dev     # JSON
  libexpected-dev        # errors as values (tl::expected)
  libcli11-dev           # command line
  libtomlplusplus-dev libyaml-cpp-dev  # settings and manifests of other tools
  zlib1g-dev             # packed traces
  libboost-dev           # Boost.Graph, Boost.PropertyTree
  libeigen3-dev          # least squares, CPU kernels
  pkgconf libopenblas-dev  # matrix products of real runs
  libopenmpi-dev openmpi-bin  # ranks of real runs
)
test_packages=(
  ccache                 # rebuilds in seconds
  libgtest-dev libbenchmark-dev
  clang libclang-rt-dev  # the second compiler, and its sanitizers
  python3                # the tests of style, documents and command line
  python3-yaml python3-networkx cmark-gfm graphviz  # readers of what is written
  iproute2               # namespaces, links and rates of the lab
  jupyter-nbconvert python3-ipykernel python3-matplotlib  # notebooks
)
# Without these, some tests are skipped.
tool_packages=(
  chromium               # reports in a browser
  libsimgrid-dev         # another simulator, whose networks must agree
  shellcheck             # scripts that stepcast writes
  zsh fish man-db        # completions and the manual page
  pybind11-dev python3-dev python3-venv mypy  # the Python module and its tests
  mkdocs mkdocs-material  # the site of the documentation
)
web_packages=(
  emscripten node-acorn  # WebAssembly, and its linker's parser
)
# A Node.js from elsewhere has an npm, or conflicts with Debian's.
command -v node > /dev/null || web_packages+=(nodejs)
command -v npm > /dev/null || web_packages+=(npm)

# The comment at the head of this file.
print_help() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }

packages=("${build_packages[@]}")
case "${1:-}" in
  -h | --help) print_help; exit 0 ;;
  "") packages+=("${test_packages[@]}") ;;
  --all) packages+=("${test_packages[@]}" "${tool_packages[@]}") ;;
  --web) packages+=("${test_packages[@]}" "${tool_packages[@]}" "${web_packages[@]}") ;;
  --build) ;;
  *) echo "usage: $0 [--all | --web | --build]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install-deps: no apt-get here; these Debian packages name what is needed:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  echo "install-deps: going on with what this machine has" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "install-deps: all ${#packages[@]} packages are there"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: missing ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# Runs apt-get. A fresh machine often updates itself in its first minutes: then it waits, for five
# minutes in all.
most_waits=60
waits=0
apt_get() {
  local words status
  while true; do
    status=0
    words=$("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
      apt-get "$@" 2>&1 >/dev/null) || status=$?
    if ((status == 0)); then return 0; fi
    if [[ $words != *"Could not get lock"* && $words != *"Unable to lock"* ]]; then
      printf '%s\n' "$words" >&2
      return "$status"
    fi
    if ((waits == 0)); then
      echo "install-deps: another program uses apt; waiting for up to five minutes" >&2
    fi
    if ((++waits > most_waits)); then
      printf '%s\n' "$words" "install-deps: gave up after five minutes" >&2
      return "$status"
    fi
    sleep 5
  done
}

echo "install-deps: installing ${missing[*]}"
apt_get update -qq
apt_get install -y -qq --no-install-recommends "${missing[@]}"
echo "install-deps: installed ${#missing[@]} packages"
