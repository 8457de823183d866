// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_environment.h"

#include <fmt/format.h>

#include <charconv>

namespace stepcast {
namespace {

constexpr int kMostRanks = 1 << 20;

struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
};
constexpr Names kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr Names kOpenMpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                         "OMPI_COMM_WORLD_LOCAL_RANK"};
constexpr Names kSlurm{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"};

class Reader {
 public:
  explicit Reader(const ReadVariable& read) : read_(read) {}

  std::string text(const char* name, const std::string& hint) {
    const auto value = read_(name);
    if (value && !value->empty()) return *value;
    errors_.push_back({ErrorCode::kMissingKey, "is not set", "", name, hint});
    return "";
  }
  int number(const char* name, int low, int high, const std::string& hint) {
    const std::string value = text(name, hint);
    if (value.empty()) return low;
    int out = 0;
    const char* end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, out);
    if (parsed.ec == std::errc() && parsed.ptr == end && out >= low && out <= high) return out;
    errors_.push_back({ErrorCode::kBadValue, fmt::format("'{}' is not accepted", value), "", name,
                       fmt::format("a whole number from {} to {}", low, high)});
    return low;
  }
  Errors take() { return std::move(errors_); }

 private:
  const ReadVariable& read_;
  Errors errors_;
};

}  // namespace

Result<RankEnvironment> read_rank_environment(const ReadVariable& read) {
  const auto is_set = [&](const Names& names) { return read(names.rank) || read(names.size); };
  const bool torchrun = is_set(kTorchrun), mpirun = !torchrun && is_set(kOpenMpi);
  if (!torchrun && !mpirun && !is_set(kSlurm)) {
    return failure({ErrorCode::kMissingKey, "no launcher says which rank this process is", "",
                    "RANK", "start it with torchrun, srun or mpirun"});
  }
  const Names& names = torchrun ? kTorchrun : mpirun ? kOpenMpi : kSlurm;
  const std::string from = fmt::format("{} sets it", names.launcher);
  Reader reader(read);
  RankEnvironment out;
  out.size = reader.number(names.size, 1, kMostRanks, from);
  out.rank = reader.number(names.rank, 0, out.size - 1, from);
  out.local_rank = reader.number(names.local_rank, 0, out.size - 1, from);
  const std::string hint =
      torchrun ? from
      : mpirun ? "give it with -x: the first host of the job, a free port"
               : "export it in the batch script: the first host of the job, a free port";
  out.address = reader.text("MASTER_ADDR", hint);
  out.port = static_cast<std::uint16_t>(reader.number("MASTER_PORT", 1, 65535, hint));
  if (Errors errors = reader.take(); !errors.empty()) return failure(std::move(errors));
  return out;
}

}  // namespace stepcast
