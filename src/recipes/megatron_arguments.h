// SPDX-License-Identifier: Apache-2.0
// The arguments as Megatron-LM prints them when it starts (megatron/training/arguments.py,
// _print_args): one a line, resolved, with those that nobody set. The flags that say the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

bool are_megatron_arguments(std::string_view text);

struct MegatronArguments {
  std::vector<std::string> words;     // as on a command line
  std::vector<std::string> switches;  // those of the words that have no value
  std::optional<std::int64_t> gpus;
};
MegatronArguments read_megatron_arguments(std::string_view text);

}  // namespace stepcast
