// SPDX-License-Identifier: Apache-2.0
// The processes of one launch on this machine, whoever their parents and groups are: each carries
// the launch's mark in its environment. mpirun puts every rank into a group of its own and is not
// their parent any more once it has died, so it is not enough to end its group.
//
// Ranks on other machines are left to Open MPI: they end when the connection to mpirun does.
#pragma once

#include <string>

namespace stepcast {

inline constexpr const char* kLaunchMark = "STEPCAST_LAUNCH_ID";

std::string new_launch_mark();  // 32 hexadecimal digits

// Kills them until none is left, and removes what Open MPI leaves behind when it is killed: shared
// memory and session folders. False: some live on (a call that the kernel does not interrupt).
bool end_marked_processes(const std::string& mark);

}  // namespace stepcast
