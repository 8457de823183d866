#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a GPU in two halves, since a machine with one may have nothing to build with:
#
#   scripts/gpu-campaign.sh prepare [ARCHIVE]      where CUDA's compiler is: builds the programs and
#                                                  packs them with their libraries (default:
#                                                  build/gpu-campaign.tar.gz)
#   scripts/gpu-campaign.sh run OUT [ARCHIVE]      where the GPU is, in a copy of the source tree:
#                                                  tests, calibration, comparison with PyTorch
#
# CLUSTER (dgx-h200) names a cluster of that GPU, BUDGET (240) the seconds of the calibration, GPUS
# (1) how many of them are used: with two or more, which needs mpirun there, NCCL's collectives are
# measured too. STEPS ("doctor tests communication calibrate validate pytorch") says which steps
# run; a later call goes on with OUT. OUT receives machine.txt, doctor.json, tests.json,
# communication.json, profile.json, validate-*.json, pytorch.json, pytorch-steps.json, logs, and
# summary.md, which sets them beside each other; every step runs, and the exit code is that of the
# first that failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

usage() {
  sed -n '/^#   scripts/,/^#$/s/^# *//p' "$0" >&2
  exit 2
}

# Shared libraries that are neither the system's own nor the driver's and CUDA's.
libraries_of() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -vE '/(ld-linux|libc|libm|libdl|librt|libpthread|libcu|libnv)[^/]*\.so'
}

prepare() {
  local archive programs
  archive=$(realpath -m "${1:-build/gpu-campaign.tar.gz}")
  scripts/build.sh release stepcast stepcast-gpu test_kernels_cuda test_comm_nccl
  programs=(build/release/stepcast build/release/stepcast-gpu
            build/release/tests/kernels/test_kernels_cuda build/release/tests/comm/test_comm_nccl)
  mkdir "$folder/bin" "$folder/lib"
  cp "${programs[@]}" "$folder/bin"
  strip "$folder"/bin/*
  libraries_of "${programs[@]}" | xargs cp -Lt "$folder/lib"
  mkdir -p "$(dirname "$archive")"
  tar -czf "$archive" -C "$folder" bin lib
  echo "wrote $archive ($(du -h "$archive" | cut -f1))"
}

# Where pip or the toolkit put it.
folder_of() {  # FILE
  local found
  found=$(find /usr/local /opt /usr/lib "$HOME" -name "$1" -print -quit 2>/dev/null)
  dirname "${found:-/usr/local/cuda/lib64/none}"
}

step() {  # NAME COMMAND...: told, logged, remembered; where STEPS has NAME, or its first word
  local name=$1 began=$SECONDS code=0
  [[ $steps == *" ${name%%-*} "* ]] || return 0
  shift
  "$@" >"$out/$name.log" 2>&1 || code=$?
  echo "$name: exit code $code, $((SECONDS - began)) s"
  ((failed != 0)) || failed=$code
}

describe() {
  nvidia-smi || true
  nvidia-smi -q -d CLOCK,POWER || true
  uname -a
}

run() {
  [[ $# -ge 1 ]] || usage
  mkdir -p "$1"
  out=$(realpath "$1")
  local archive=${2:-build/gpu-campaign.tar.gz}
  tar -xzf "$archive" -C "$folder"
  export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  local library
  for library in 'libcublasLt.so.*' libnccl.so.2 libcudnn.so.9 'libnvrtc.so.*'; do
    LD_LIBRARY_PATH+=":$(folder_of "$library")"
  done
  failed=0
  steps=" ${STEPS:-doctor tests communication calibrate validate pytorch} "
  describe >"$out/machine.txt" 2>&1
  step doctor "$folder/bin/stepcast" doctor --format json --data "$root" -o "$out/doctor.json"
  step tests "$folder/bin/test_kernels_cuda" "--gtest_output=json:$out/tests.json"
  step communication "$folder/bin/test_comm_nccl" "--gtest_output=json:$out/communication.json"
  local stated=()
  for scenario in scripts/gpu-campaign/*.json; do
    stated+=("$folder/$(basename "$scenario")")
    sed "s/\"CLUSTER\"/\"${CLUSTER:-dgx-h200}\"/" "$scenario" >"${stated[-1]}"
  done
  step calibrate "$folder/bin/stepcast" calibrate --backend cuda "${stated[@]}" --data "$root" \
    --budget "${BUDGET:-240}" --ranks "${GPUS:-1}" -o "$out/profile.json"
  local result
  for scenario in "${stated[@]}"; do  # what has more ranks than there are GPUs: one of them alone
    result=$out/validate-$(basename "$scenario")
    [[ -s $result ]] && continue  # of an earlier call
    step "$(basename "$result" .json)" "$folder/bin/stepcast" validate "$scenario" \
      --backend cuda --rank 0 --profile "$out/profile.json" --calibrate never --data "$root" \
      --warmup 1 --steps 4 --time-limit 240 --format json -o "$result"
  done
  step pytorch python3 scripts/gpu-campaign/pytorch.py "$out/profile.json" -o "$out/pytorch.json"
  step pytorch-steps python3 -B scripts/gpu-campaign/pytorch_steps.py "${stated[@]}" \
    --data "$root" --stepcast "$folder/bin/stepcast" -o "$out/pytorch-steps.json"
  for log in pytorch pytorch-steps; do
    if [[ -f $out/$log.log ]]; then cat "$out/$log.log"; fi
  done
  python3 scripts/gpu-campaign/summary.py "$out" -o "$out/summary.md"
  return "$failed"
}

case "${1:-}" in
  prepare) shift; prepare "$@" ;;
  run) shift; run "$@" ;;
  *) usage ;;
esac
