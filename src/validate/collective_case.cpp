// SPDX-License-Identifier: Apache-2.0
#include "validate/collective_case.h"

#include <fmt/format.h>

#include "cluster/cluster.h"
#include "core/row_types.h"
#include "cost/nccl_tuner.h"

namespace stepcast {
namespace {

constexpr double kLargestMessage = 1e15;

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Algorithm one : {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvls,
                                Algorithm::kNvlsTree, Algorithm::kPairwise, Algorithm::kPat}) {
      out.emplace_back(name_of(one));
    }
    return out;
  }();
  return names;
}

}  // namespace

std::string CollectiveCase::algorithm() const {
  for (const NamedAlgorithm& one : algorithms) {
    if (bytes >= one.from_bytes && bytes <= one.to_bytes.value_or(bytes)) return one.name;
  }
  return "";
}

std::string size_text(ByteCount bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit < 3 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

Rows NamedAlgorithm::fields() {
  using F = NamedAlgorithm;
  static constexpr Row all[] = {
      row<&F::name>("name").required().named(algorithm_names).says("as the source names it"),
      row<&F::from_bytes>("from_bytes").within(1, kLargestMessage).says("the smallest message"),
      row<&F::to_bytes>("to_bytes").within(1, kLargestMessage).says("the largest message")};
  return rows_of<F>(all);
}

Rows CollectiveCase::fields() {
  using F = CollectiveCase;
  static constexpr Row all[] = {
      row<&F::kind>("kind").required().says("what the ranks did"),
      row<&F::ranks>("ranks").required().within(2, kMaxGpus).says("of the communicator"),
      row<&F::ranks_per_node>("ranks_per_node")
          .within(1, kMaxGpus)
          .says("GPUs of a node that take part, the first ones; all unless stated"),
      row<&F::fabric>("fabric").required().says(
          "vendor, GPU and network in a few words: the row of the report"),
      row<&F::table>("table").says(
          "the curve of collectives.json that was made of these times: each is forecast without "
          "itself"),
      row<&F::algorithms>("algorithms").says("that the library took, where the source names them")};
  return rows_of<F>(all);
}

}  // namespace stepcast
