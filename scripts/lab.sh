#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cluster on one machine: every GPU of a topology becomes a host of its own (network and UTS
# namespace), joined by links with the topology's rates. docs/lab.md says what is shaped and how.
#
#   scripts/lab.sh TOPOLOGY.json                prints what would be made; needs no root
#   scripts/lab.sh TOPOLOGY.json -- COMMAND...  makes it, runs COMMAND on its first host, removes it
#   scripts/lab.sh --clean                      removes what killed labs left behind
#
# Inside, `mpirun -n N` starts rank i on host i. The exit code is COMMAND's; 2: the topology is
# wrong; 77: something that is needed is missing. $STEPCAST names the program where it is neither
# in build/release nor on the path.
set -euo pipefail

usage() {
  echo "usage: $0 TOPOLOGY.json [-- COMMAND...] | --clean" >&2
  exit 2
}

missing() {
  echo "lab: skipped, $1 is missing" >&2
  exit 77
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

find_stepcast() {
  if [[ -n ${STEPCAST:-} ]]; then
    command -v "$STEPCAST"
  elif [[ -x $here/../build/release/stepcast ]]; then
    echo "$here/../build/release/stepcast"
  else
    command -v stepcast
  fi
}

require_all() {
  ((EUID == 0)) || missing "root"
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || missing "$program"
  done
}

case "${1:-}" in
  "") usage ;;
  --clean)
    (($# == 1)) || usage
    require_all python3 ip
    exec python3 -B "$here/lab/run.py" "" clean ""
    ;;
  -*) usage ;;
esac

topology=$1
shift
mode=print
if (($# > 0)); then
  if [[ $1 != -- ]] || (($# == 1)); then usage; fi
  shift
  mode=run
  require_all python3 ip tc bridge unshare mpirun
fi
command -v python3 >/dev/null || missing python3
stepcast=$(find_stepcast) || missing "the program stepcast (scripts/build.sh release stepcast)"
exec python3 -B "$here/lab/run.py" "$stepcast" "$mode" "$topology" "$@"
