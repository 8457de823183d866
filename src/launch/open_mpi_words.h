// SPDX-License-Identifier: Apache-2.0
// Open MPI 4.1's mpirun says these words when a rank ends as it should not (its help texts
// help-orterun.txt and help-mpi-api.txt).
#pragma once

#include <optional>
#include <string>

namespace stepcast {

struct RankDeath {
  int rank = -1;
  int signal = 0;            // 0: none
  int exit_code = -1;        // -1: none
  bool aborted = false;      // it called MPI_Abort
  bool unfinalized = false;  // it ended without MPI_Finalize
};

// The rank that mpirun blames in its own lines, if it does. After MPI_Abort it often does not: in
// 4.1.4 the text is lost on the way from the rank one time in three ("ORTE_ERROR_LOG: ...
// show_help.c").
std::optional<RankDeath> death_in(const std::string& words);

}  // namespace stepcast
