// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/json.h"
#include "core/text_file.h"
#include "recipes/yaml_json.h"
#include "replay/dimension_network.h"

namespace stepcast {
namespace {

// ASTRA-sim turns GB/s into bytes per ns by 2^30 / 10^9
// (astra-network-analytical, common/NetworkFunction.cc).
constexpr double kAstraGigabyte = 1073741824.0;
constexpr std::int64_t kMostRanks = 131072;
constexpr std::size_t kMostDimensions = 16;

constexpr const char* kForms[] = {"Ring", "Switch", "FullyConnected"};

// A value of all dimensions stands in a list, one for each; of one dimension it may stand alone.
std::vector<JsonValue> values_of(ObjectReader& reader, const char* key) {
  const auto value = reader.required(key);
  if (!value) return {};
  return value->is_array() ? value->items() : std::vector{*value};
}

void read_dimensions(ObjectReader& reader, std::vector<NetworkDimension>& out) {
  static const std::vector<std::string> forms(std::begin(kForms), std::end(kForms));
  const auto topology = values_of(reader, "topology");
  const auto counts = values_of(reader, "npus_count");
  const auto rates = values_of(reader, "bandwidth");
  const auto latencies = values_of(reader, "latency");
  const std::size_t size = topology.size();
  if (!reader.ok()) return;
  if (size == 0 || size > kMostDimensions || counts.size() != size || rates.size() != size ||
      latencies.size() != size) {
    reader.fail("topology", ErrorCode::kIllegal,
                fmt::format("has {} dimensions, npus_count {}, bandwidth {} and latency {}", size,
                            counts.size(), rates.size(), latencies.size()),
                "one value of each for every dimension");
    return;
  }
  for (std::size_t i = 0; i < size; ++i) {
    NetworkDimension one;
    if (const auto form = topology[i].choice(forms)) one.form = static_cast<DimensionForm>(*form);
    one.ranks = counts[i].integer(1, kMostRanks).value_or(1);
    one.bandwidth = BytesPerSecond(rates[i].number(1e-6, 1e9).value_or(1) * kAstraGigabyte);
    one.latency = Seconds(latencies[i].number(0, 1e12).value_or(0) * 1e-9);
    out.push_back(one);
  }
}

// "ring", "direct", "halvingDoubling": one for all dimensions, or a list. A number behind direct is
// a window of messages, which closed forms do not have.
void read_algorithm(ObjectReader& reader, const std::string& key,
                    std::vector<DimensionAlgorithm>& out) {
  for (const char* custom : {"-custom", "-chakra"}) {
    if (!reader.has(key + custom)) continue;
    reader.fail(key + custom, ErrorCode::kNotSupported, "an algorithm of its own is not modelled",
                "take the key out, and " + key + " holds");
  }
  const auto value = reader.value(key);
  if (!value) return;
  const auto items = value->is_array() ? value->items() : std::vector{*value};
  if (!items.empty()) out.clear();
  for (const JsonValue& item : items) {
    const std::string word = item.text().value_or("ring");
    if (word.starts_with("ring") || word == "oneRing") {
      out.push_back(DimensionAlgorithm::kRing);
    } else if (word.starts_with("direct") || word.starts_with("oneDirect")) {
      out.push_back(DimensionAlgorithm::kDirect);
    } else if (word == "halvingDoubling" || word == "oneHalvingDoubling" ||
               word == "doubleBinaryTree") {
      out.push_back(DimensionAlgorithm::kHalving);
    } else {
      item.fail(ErrorCode::kNotSupported, fmt::format("'{}' is not modelled", word),
                "ring, direct, halvingDoubling or doubleBinaryTree");
    }
  }
}

// 0 and 1, or true and false.
bool is_on(ObjectReader& reader, const char* key) {
  const auto value = reader.value(key);
  if (!value) return false;
  return value->is_boolean() ? value->boolean().value_or(false)
                             : value->number(0, 1).value_or(0) > 0;
}

// Keys of ASTRA-sim's system file that change no time, or none of what is modelled here: the order
// of chunks, and what it writes.
constexpr const char* kWithoutEffect[] = {"scheduling-policy",
                                          "collective-optimization",
                                          "boost-mode",
                                          "intra-dimension-scheduling",
                                          "inter-dimension-scheduling",
                                          "trace-enabled",
                                          "local-mem-trace-filename",
                                          "track-local-mem",
                                          "dump-local-mem-trace",
                                          "local-mem-size",
                                          "L",
                                          "o",
                                          "g",
                                          "G"};

// Refuses a key that is nearly one that was asked for, and names the others.
std::vector<std::string> keys_not_read(ObjectReader& reader,
                                       const std::vector<std::string>& known) {
  std::vector<std::string> out;
  for (const std::string& key : reader.not_asked()) {
    // A mistyped key is about as long.
    std::vector<std::string> like = known;
    std::erase_if(like, [&](const std::string& one) {
      return std::max(one.size(), key.size()) - std::min(one.size(), key.size()) > 3;
    });
    if (const std::string hint = did_you_mean(key, like); !hint.empty()) {
      reader.fail(key, ErrorCode::kUnknownKey, "is not a known key", hint);
    } else {
      out.push_back(key);
    }
  }
  return out;
}

}  // namespace

std::int64_t DimensionFile::ranks() const {
  std::int64_t out = 1;
  for (const NetworkDimension& one : dimensions) out = std::min(out * one.ranks, kMostRanks + 1);
  return out;
}

Result<DimensionFile> read_network_file(const std::string& file) {
  const auto text = read_text_file(file, {.most_bytes = kMostScriptBytes});
  if (!text) return failure(text.error());
  auto json = yaml_to_json(*text, file);
  if (!json) return failure(json.error());
  const auto document = JsonDocument::from(std::move(*json), file);
  DimensionFile out;
  out.name = std::filesystem::path(file).filename().string();
  ObjectReader reader(document->root());
  read_dimensions(reader, out.dimensions);
  out.not_read = keys_not_read(reader, {"topology", "npus_count", "bandwidth", "latency"});
  if (!document->ok()) return failure(document->errors());
  if (out.ranks() > kMostRanks) {
    return failure({ErrorCode::kBadValue, "has more ranks than any cluster", file, "npus_count",
                    fmt::format("at most {} in all", kMostRanks)});
  }
  return out;
}

Result<SystemSettings> read_system_file(const std::string& file) {
  const auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  SystemSettings out;
  ObjectReader reader((*document)->root());
  constexpr std::int64_t kMostChunks = 1 << 20;
  out.chunks = reader.integer("preferred-dataset-splits", 1, kMostChunks).value_or(1);
  out.chunks_at_once = reader.integer("active-chunks-per-dimension", 1, kMostChunks).value_or(1);
  out.endpoint_delay = Seconds(reader.number("endpoint-delay", 0, 1e9).value_or(0) * 1e-9);
  out.memory = BytesPerSecond(reader.number("local-mem-bw", 0, 1e9).value_or(0) * 1e9);
  out.peak_flops = reader.number("peak-perf", 0, 1e9).value_or(0) * 1e12;
  read_algorithm(reader, "all-reduce-implementation", out.all_reduce);
  read_algorithm(reader, "all-gather-implementation", out.all_gather);
  read_algorithm(reader, "reduce-scatter-implementation", out.reduce_scatter);
  read_algorithm(reader, "all-to-all-implementation", out.all_to_all);
  out.roofline = is_on(reader, "roofline-enabled");
  out.replay_alone = is_on(reader, "replay-only");
  for (const char* key : {"model-shared-bus", "local-reduction-delay"}) {
    if (reader.number(key, 0, 1e9).value_or(0) > 0) {
      reader.fail(key, ErrorCode::kNotSupported, "is not modelled", "0");
    }
  }
  std::vector<std::string> known = {"preferred-dataset-splits",
                                    "active-chunks-per-dimension",
                                    "endpoint-delay",
                                    "local-mem-bw",
                                    "peak-perf",
                                    "roofline-enabled",
                                    "replay-only",
                                    "all-reduce-implementation",
                                    "all-gather-implementation",
                                    "reduce-scatter-implementation",
                                    "all-to-all-implementation"};
  for (const char* key : kWithoutEffect) {
    reader.ignore(key);
    known.emplace_back(key);
  }
  out.not_read = keys_not_read(reader, known);
  if (!(*document)->ok()) return failure((*document)->errors());
  return out;
}

}  // namespace stepcast
