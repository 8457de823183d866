#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on a host of the lab that $STEPCAST_LAB names, as ssh would: the launch agent of
# Open MPI.
#
#   enter.sh HOST COMMAND [ARGUMENT...]
#
# Like ssh it hands the words to a shell as one line. A UTS namespace of its own gives the host its
# name; `ip netns exec` brings its network and its /etc/hosts.
set -euo pipefail

host=$1
shift
# shellcheck disable=SC2016  # $1 and $2 are of the inner shell
exec ip netns exec "$STEPCAST_LAB-$host" unshare --uts \
  sh -c 'echo "$1" >/proc/sys/kernel/hostname && exec sh -c "$2"' sh "$host" "$*"
