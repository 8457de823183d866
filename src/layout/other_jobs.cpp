// SPDX-License-Identifier: Apache-2.0
#include "layout/other_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/cluster_part.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole && out >= 0 && out < kMaxGpus ? std::optional(out) : std::nullopt;
}

// "2-3,6": ascending, each once. Nothing where it says something else.
std::optional<std::vector<std::int64_t>> nodes_of_text(std::string_view text) {
  std::vector<std::int64_t> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const auto first = number_of(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    if (!out.empty() && *first <= out.back()) return std::nullopt;
    for (std::int64_t node = *first; node <= *last; ++node) out.push_back(node);
    begin = end + 1;
  }
  return out.empty() ? std::nullopt : std::optional(std::move(out));
}

class JobReader {
 public:
  JobReader(JsonDocument& document, const Cluster& whole, const ReadOnCluster& read)
      : document_(document), whole_(whole), read_(read) {
    for (const VertexId gpu : whole.topology.gpus()) {
      left_.insert(whole.topology.vertices()[gpu.index()].node);
    }
  }

  std::optional<OtherJob> read(const JsonValue& item) {
    ObjectReader reader(item);
    const std::string nodes = reader.required_text("nodes");
    const auto scenario = reader.required("scenario");
    reader.finish();
    if (!scenario || (nodes.empty() && !reader.has("nodes"))) return std::nullopt;
    const auto own = nodes_of_text(nodes);
    if (!own) {
      reader.fail("nodes", ErrorCode::kBadValue, fmt::format("'{}' names no nodes", nodes),
                  "as 2-3,6, in ascending order");
      return std::nullopt;
    }
    for (const std::int64_t node : *own) {
      if (left_.erase(node) > 0) continue;
      reader.fail("nodes", ErrorCode::kIllegal, fmt::format("node {} is not free", node),
                  fmt::format("nodes 0 to {}, each for one job", whole_.spec.nodes - 1));
      return std::nullopt;
    }
    const Cluster part = part_of(whole_, *own);
    auto job = scenario->is_text() ? read_file(*scenario, part) : read_inline(*scenario, part);
    if (!job) return std::nullopt;
    return OtherJob{nodes, std::make_shared<const Scenario>(std::move(*job))};
  }

  std::vector<std::int64_t> left() const { return {left_.begin(), left_.end()}; }

 private:
  std::optional<Scenario> read_file(const JsonValue& value, const Cluster& part) {
    auto document = JsonDocument::load(value.text().value_or(""));
    if (!document) {
      for (const Error& error : document.error()) value.fail(error.code, to_string(error));
      return std::nullopt;
    }
    auto job = read_(**document, part);
    if (job) return std::move(*job);
    for (const Error& error : job.error()) value.fail(error.code, to_string(error));
    return std::nullopt;
  }

  std::optional<Scenario> read_inline(const JsonValue& value, const Cluster& part) {
    const auto document = JsonDocument::from(value.raw(), value.file());
    auto job = read_(*document, part);
    if (job) return std::move(*job);
    for (Error error : job.error()) {
      if (error.file == value.file()) {
        error.path = error.path.empty() ? value.path() : value.path() + "." + error.path;
      }
      document_.add(std::move(error));
    }
    return std::nullopt;
  }

  JsonDocument& document_;
  const Cluster& whole_;
  const ReadOnCluster& read_;
  std::set<std::int64_t> left_;
};

}  // namespace

std::vector<OtherJob> read_other_jobs(const JsonValue& list, JsonDocument& document,
                                      Cluster& cluster, const ReadOnCluster& read) {
  const std::size_t before = document.errors().size();
  std::vector<OtherJob> out;
  if (cluster.spec.accelerator.is_cpu()) {
    list.fail(ErrorCode::kNotSupported, "jobs that share processors are not supported yet");
    return out;
  }
  JobReader reader(document, cluster, read);
  for (const JsonValue& item : list.items()) {
    if (auto job = reader.read(item)) out.push_back(std::move(*job));
  }
  const std::vector<std::int64_t> left = reader.left();
  if (left.empty()) list.fail(ErrorCode::kIllegal, "the other jobs take all nodes", "leave some");
  if (document.errors().size() == before && !out.empty()) cluster = part_of(cluster, left);
  return out;
}

}  // namespace stepcast
