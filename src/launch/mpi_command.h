// SPDX-License-Identifier: Apache-2.0
// The command line of Open MPI's mpirun (4.1) for a program in several ranks, or of the program
// itself for a single rank.
//
// The user's STEPCAST_MPIRUN_ARGS (a host file, a network) is added to it and wins over what would
// be set here, and so do OMPI_MCA_* variables: those set here are only defaults.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "launch/process_group.h"

namespace stepcast {

struct RankProgram {
  std::string program;  // a path
  std::vector<std::string> arguments;
  int ranks = 1;
  bool alone = false;          // the only rank, and no program of MPI: started without mpirun
  bool bind = true;            // one core for each rank, when there are as many
  std::string working_folder;  // of the ranks; empty: that of this process
  // Open MPI keeps its own files here, which a killed mpirun leaves behind; empty: in TMPDIR.
  std::string session_folder;
  // NAME=VALUE. `inherited` is the environment of this process, as main() was given it; PATH and
  // STEPCAST_MPIRUN_ARGS are read from it. `added` is for the ranks, on other machines too.
  std::vector<std::string> inherited;
  std::vector<std::string> added;
};

// `cores` of this machine; `root`: mpirun refuses to run as root unless told.
Result<ProcessCommand> mpi_command(const RankProgram& program, int cores, bool root);

// Words as a shell separates them: blanks, 'single', "double" quotes, \.
Result<std::vector<std::string>> shell_words(const std::string& text, const std::string& origin);

}  // namespace stepcast
