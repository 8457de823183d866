// SPDX-License-Identifier: Apache-2.0
// Reads what the ranks of a calibration wrote: rank-N.json with the operations and the collectives
// that each of them measured.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calibrate/cpu_measurements.h"
#include "calibrate/protocol/operation_json.h"

namespace stepcast::cli {

// If several launches have measured one thing, the last one counts.
class RankResults {
 public:
  void begin_launch() { of_this_launch_.clear(); }
  void read(const std::filesystem::path& file, Errors& errors);
  void read(JsonDocument& document);  // errors stay in it
  // The first rank measures it; older results have none.
  const std::optional<HostMemory>& host_memory() const { return host_memory_; }
  // Call once. A kernel that several ranks have measured gets the mean of their times.
  void move_to(std::vector<MeasuredOperation>& operations,
               std::vector<MeasuredCollective>& collectives);

 private:
  void read_operation_point(const JsonValue& value);
  void read_collective(const JsonValue& value);

  OperationNames names_;
  std::map<std::string, std::vector<MeasuredOperation>> operations_;
  std::map<std::string, MeasuredCollective> collectives_;
  std::set<std::string> of_this_launch_;
  std::optional<HostMemory> host_memory_;
};

}  // namespace stepcast::cli
