// SPDX-License-Identifier: Apache-2.0
#include "cluster/accelerator.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cluster/data_folder.h"
#include "cluster/local_cluster.h"
#include "core/gathered_errors.h"
#include "core/json.h"

namespace stepcast {
namespace {

// "8.0" -> 80, "10.3" -> 103.
std::int64_t read_compute_capability(ObjectReader& reader) {
  const auto text = reader.text("compute_capability");
  if (!text) return 0;
  std::int64_t major = 0;
  std::int64_t minor = 0;
  const char* end = text->data() + text->size();
  const auto [dot, status] = std::from_chars(text->data(), end, major);
  const bool dotted = status == std::errc() && dot != end && *dot == '.';
  const auto [rest, minor_status] = std::from_chars(dotted ? dot + 1 : end, end, minor);
  if (!dotted || minor_status != std::errc() || rest != end || major < 1 || minor < 0 ||
      minor > 9) {
    reader.fail("compute_capability", ErrorCode::kBadValue,
                fmt::format("'{}' is not a compute capability", *text), "write it like \"9.0\"");
    return 0;
  }
  return 10 * major + minor;
}

template <class T>
T required_positive(ObjectReader& reader, std::string_view key, std::optional<T> value) {
  if (!reader.required(key) || !value) return T();
  if (!(value->value() > 0)) {
    reader.fail(key, ErrorCode::kBadValue, "0 is out of range", "more than 0");
  }
  return *value;
}

void read_dense_peak(const JsonValue& value, Accelerator& accelerator) {
  ObjectReader peaks(value);
  for (const DataType type : kPrecisions) {
    const char* key = name_of(type);
    const auto rate = peaks.flops_rate(key);
    if (!rate) continue;
    if (!(rate->value() > 0)) {
      peaks.fail(key, ErrorCode::kBadValue, "0 is out of range",
                 "more than 0; leave it out if none");
    }
    accelerator.dense_peak[type] = *rate;
  }
  // Stated by data sheets; no operation is priced in it.
  peaks.flops_rate("int8");
  peaks.finish();
}

}  // namespace

std::optional<FlopsPerSecond> Accelerator::peak(DataType type) const {
  const auto found = dense_peak.find(type);
  if (found == dense_peak.end()) return std::nullopt;
  return found->second;
}

Accelerator read_accelerator(const JsonValue& value) {
  ObjectReader reader(value);
  Accelerator out;
  reader.ignore("stepcast_accelerator");
  out.name = reader.required_text("name");
  out.title = reader.text("title").value_or(out.name);
  if (reader.required("architecture")) {
    const auto architecture = reader.choice("architecture", architecture_names());
    if (architecture) out.architecture = static_cast<GpuArchitecture>(*architecture);
  }
  out.compute_capability = read_compute_capability(reader);
  out.sm_count = reader.required_integer("sm_count", 1, 4096);
  out.memory = std::llround(required_positive(reader, "memory", reader.bytes("memory")).value());
  out.memory_bandwidth =
      required_positive(reader, "memory_bandwidth", reader.rate("memory_bandwidth"));
  reader.bytes("l2");  // stated by data sheets; no price depends on it yet
  out.power_w = reader.number("power_w", 1, 1e5).value_or(0);
  if (const auto peaks = reader.required("dense_peak")) read_dense_peak(*peaks, out);
  out.cores = reader.integer("cores", 1, 1 << 20).value_or(0);
  out.pci_devices = read_texts(reader, "pci_devices");
  out.profile = reader.text("profile").value_or("");
  out.sources = read_texts(reader, "sources");
  out.notes = reader.text("notes").value_or("");
  reader.finish();
  return out;
}

Result<Accelerator> find_accelerator(const std::string& name,
                                     const std::string& topologies_folder) {
  if (name == "cpu") {
    const MachineFacts machine = this_machine();
    if (!machine.unreadable.empty()) {
      return failure({ErrorCode::kIo, "cannot be read", machine.unreadable, "", ""});
    }
    return cpu_accelerator(machine, machine.cores);
  }
  const DataFolder folder(topologies_folder + "/accelerators", "accelerator");
  return folder.open(name).and_then(
      [&](std::unique_ptr<JsonDocument> document) -> Result<Accelerator> {
        Accelerator accelerator = read_accelerator(document->root());
        if (!document->ok()) return failure(document->errors());
        accelerator.found_as = name;
        return accelerator;
      });
}

Result<std::vector<Accelerator>> list_accelerators(const std::string& topologies_folder) {
  const DataFolder folder(topologies_folder + "/accelerators", "accelerator");
  std::vector<Accelerator> out;
  Errors errors;
  const auto names = folder.names();
  if (!names) return failure(names.error());
  for (const std::string& name : *names) {
    Result<Accelerator> accelerator = find_accelerator(name, topologies_folder);
    if (accelerator) {
      out.push_back(std::move(*accelerator));
    } else {
      append(errors, accelerator.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

}  // namespace stepcast
