// SPDX-License-Identifier: Apache-2.0
#include "launch/open_mpi_words.h"

#include <charconv>
#include <string_view>

namespace stepcast {
namespace {

// The number behind `before`, searched from `from` on.
std::optional<int> number_after(std::string_view words, std::string_view before,
                                std::size_t from = 0) {
  const std::size_t found = words.find(before, from);
  if (found == words.npos) return std::nullopt;
  std::string_view rest = words.substr(found + before.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  int value = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return parsed.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<RankDeath> death_in(const std::string& words) {
  // "mpirun noticed that process rank 1 with PID 0 on node n exited on signal 9 (Killed)."
  if (const auto at = words.find("noticed that process rank"); at != words.npos) {
    const auto rank = number_after(words, "process rank", at);
    const auto signal = number_after(words, "exited on signal", at);
    if (rank && signal) return RankDeath{*rank, *signal, -1, false, false};
  }
  // "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 7."
  if (const auto at = words.find("MPI_ABORT was invoked on rank"); at != words.npos) {
    const auto rank = number_after(words, "on rank", at);
    const auto code = number_after(words, "with errorcode", at);
    if (rank) return RankDeath{*rank, 0, code.value_or(-1), true, false};
  }
  // "Process name: [[23128,1],1]\n  Exit code:    3"
  if (const auto at = words.find("Process name: [["); at != words.npos) {
    const auto rank = number_after(words, "],", at);
    const auto code = number_after(words, "Exit code:", at);
    if (rank && code) return RankDeath{*rank, 0, *code, false, false};
  }
  // "mpirun has exited due to process rank 1 with PID 0 on\nnode n exiting improperly."
  if (const auto at = words.find("has exited due to process rank"); at != words.npos) {
    const auto rank = number_after(words, "process rank", at);
    if (rank) return RankDeath{*rank, 0, -1, false, true};
  }
  return std::nullopt;
}

}  // namespace stepcast
