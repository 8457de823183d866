// SPDX-License-Identifier: Apache-2.0
// Measuring GPUs needs software: this tells what this build has of it, what this machine has, and
// what to do about what is missing. Libraries are opened to see, as the programs would.
#pragma once

#include <string>
#include <vector>

namespace stepcast::cli {

struct SoftwareFinding {
  std::string what;
  std::string found;
  std::string to_do;  // empty: nothing
};

std::vector<SoftwareFinding> gpu_software();

}  // namespace stepcast::cli
