#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a GPU in two halves, since a machine with one may have nothing to build with:
#
#   scripts/gpu-campaign.sh prepare [ARCHIVE]   where CUDA's compiler is: builds the programs and
#                                               packs them with their libraries (default:
#                                               build/gpu-campaign.tar.gz)
#   scripts/gpu-campaign.sh run OUT [...]       where the GPU is, in a copy of the source tree:
#                                               tests, calibration, validations, comparison with
#                                               PyTorch, in slices of ten minutes
#   scripts/gpu-campaign.sh libraries PROGRAM...
#                                               which libraries travel with programs, and which are
#                                               looked for where they run
#
# `run --help` says which slices there are, what each brings, and how one goes on with another.
# The machine needs python3 and the driver; PyTorch and compute-sanitizer if they are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  sed -n '/^#   scripts/,/^#$/s/^# *//p' "$0" >&2
  exit 2
}

# Shared libraries that travel with the programs: neither those of the C library, which belong to
# the machine's loader, nor the driver's and CUDA's, which are looked for there.
carried() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -vE "/lib(c|m|dl|rt|pthread|cuda|cudart|cublas|cublasLt|nvrtc|nvidia-ml)$number"
}
number='\.so(\.[0-9]+)*$'  # of a shared library: libm is not libmpi

# Names the libraries that are looked for there. Libraries that programs load while they run are of
# the same CUDA as those that they are linked with.
looked_for() {
  local linked
  linked=$(ldd "$@" | awk '$1 ~ /^lib(cublas|cublasLt|cudart)\.so/ {print $1}' | sort -u)
  printf '%s\n' "$linked" "libnvrtc.so.${linked##*.so.}" libcudnn.so.9 libnccl.so.2
}

prepare() {
  local archive programs folder
  archive=$(realpath -m "${1:-build/gpu-campaign.tar.gz}")
  folder=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder is that of now
  trap "rm -rf '$folder'" EXIT
  scripts/build.sh release stepcast stepcast-gpu test_kernels_gpu test_comm_nccl
  programs=(build/release/stepcast build/release/stepcast-gpu
            build/release/tests/kernels/test_kernels_gpu build/release/tests/comm/test_comm_nccl)
  mkdir "$folder/bin" "$folder/lib"
  cp "${programs[@]}" "$folder/bin"
  strip "$folder"/bin/*
  carried "${programs[@]}" | xargs cp -Lt "$folder/lib"
  looked_for "${programs[@]}" >"$folder/lib/needed.txt"
  mkdir -p "$(dirname "$archive")"
  tar -czf "$archive" -C "$folder" bin lib
  echo "wrote $archive ($(du -h "$archive" | cut -f1))"
}

case "${1:-}" in
  prepare) shift; prepare "$@" ;;
  libraries) shift; carried "$@"; looked_for "$@" ;;
  run) shift; exec python3 -B scripts/gpu-campaign/campaign.py "$@" ;;
  *) usage ;;
esac
