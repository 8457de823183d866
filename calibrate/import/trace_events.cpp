// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/trace_events.h"

#include <algorithm>
#include <cmath>

#include "core/json_tree.h"
#include "core/parse_json.h"
#include "traces/event_fields.h"

namespace stepcast {
namespace {

// Operators around one another, as far as they are followed. Programs nest some dozens.
constexpr int kMostAround = 1000;

std::vector<std::string> texts_of(const SortedJson& args, const char* key) {
  std::vector<std::string> out;
  const auto found = args.find(key);
  if (found == args.end() || !found->is_array()) return out;
  for (const SortedJson& one : *found) out.push_back(one.is_string() ? one.get<std::string>() : "");
  return out;
}

TraceOperator operator_in(const SortedJson& event, const SortedJson& args) {
  TraceOperator out;
  out.name = event_text(event, "name");
  out.thread = event_thread(event);
  out.begin_us = event_number(event, "ts");
  out.end_us = out.begin_us + event_number(event, "dur");
  out.external_id = event_id(args, "External id");
  out.sequence = event_id(args, "Sequence number");
  out.dims = event_dims(args);
  out.types = texts_of(args, "Input type");
  out.concrete = texts_of(args, "Concrete Inputs");
  return out;
}

TraceKernel kernel_in(const SortedJson& event, const SortedJson& args) {
  TraceKernel out;
  out.name = event_text(event, "name");
  out.seconds = event_number(event, "dur") * 1e-6;
  out.external_id = event_id(args, "External id");
  out.correlation = event_id(args, "correlation");
  out.collective = event_text(args, "Collective name");
  out.type = event_text(args, "dtype");
  out.elements_in = event_id(args, "In msg nelems");
  out.elements_out = event_id(args, "Out msg nelems");
  out.group_size = event_id(args, "Group size");
  out.ranks = event_ranks(args);
  return out;
}

}  // namespace

void TraceEvents::add(const SortedJson& event) {
  const std::int64_t place = events_++;
  if (event_text(event, "ph") != "X") return;
  const std::string kind = event_text(event, "cat");
  const SortedJson& args = event_args(event);
  if (kind == "cpu_op") {
    operators.push_back(operator_in(event, args));
    operators.back().event = place;
  } else if (kind == "kernel") {
    TraceKernel kernel = kernel_in(event, args);
    kernel.event = place;
    const bool timed = std::isfinite(kernel.seconds) && kernel.seconds > 0;
    (timed ? kernels : without_time).push_back(std::move(kernel));
  } else if (kind == "cuda_runtime" || kind == "cuda_driver") {
    const TraceLaunch launch{event_thread(event), event_number(event, "ts")};
    if (const std::int64_t correlation = event_id(args, "correlation"); correlation >= 0) {
      by_correlation_[correlation] = launch;
    }
    by_external_id_[event_id(args, "External id")].push_back(launch);
  }
}

void TraceEvents::link() {
  for (std::size_t i = 0; i < operators.size(); ++i) {
    by_thread_[operators[i].thread].push_back(static_cast<std::int64_t>(i));
    operator_by_external_id_.emplace(operators[i].external_id, static_cast<std::int64_t>(i));
  }
  const auto at = [&](std::int64_t i) -> TraceOperator& {
    return operators[static_cast<std::size_t>(i)];
  };
  for (auto& [thread, list] : by_thread_) {
    // When two events begin together, the longer one contains the other, or the first one if they
    // are equal.
    std::stable_sort(list.begin(), list.end(), [&](std::int64_t a, std::int64_t b) {
      if (at(a).begin_us != at(b).begin_us) return at(a).begin_us < at(b).begin_us;
      return at(a).end_us > at(b).end_us;
    });
    std::vector<std::int64_t> open;
    for (const std::int64_t i : list) {
      while (!open.empty() && at(open.back()).end_us < at(i).end_us) open.pop_back();
      at(i).parent = open.empty() ? -1 : open.back();
      open.push_back(i);
    }
  }
}

std::int64_t TraceEvents::innermost(const TraceLaunch& launch) const {
  const auto thread = by_thread_.find(launch.thread);
  if (thread == by_thread_.end()) return -1;
  const auto& list = thread->second;
  const auto after =
      std::upper_bound(list.begin(), list.end(), launch.time_us, [&](double time, std::int64_t i) {
        return time < operators[static_cast<std::size_t>(i)].begin_us;
      });
  if (after == list.begin()) return -1;
  std::int64_t i = *(after - 1);
  for (int above = 0; i >= 0 && above < kMostAround; ++above) {
    if (operators[static_cast<std::size_t>(i)].end_us >= launch.time_us) return i;
    i = operators[static_cast<std::size_t>(i)].parent;
  }
  return -1;
}

std::int64_t TraceEvents::operator_of(const TraceKernel& kernel) const {
  if (const auto launch = by_correlation_.find(kernel.correlation);
      kernel.correlation >= 0 && launch != by_correlation_.end()) {
    return innermost(launch->second);
  }
  if (kernel.external_id < 0) return -1;
  const auto launches = by_external_id_.find(kernel.external_id);
  if (launches != by_external_id_.end() && launches->second.size() == 1) {
    return innermost(launches->second.front());
  }
  const auto found = operator_by_external_id_.find(kernel.external_id);
  return found == operator_by_external_id_.end() ? -1 : found->second;
}

Result<TraceEvents> read_trace_events(const std::string& text, const std::string& file) {
  TraceEvents out;
  // Each event is handled as it is read and then dropped, because a trace as one tree would take
  // gigabytes.
  const auto take = [&](const SortedJson& value) {
    if (!value.contains("ph")) return true;
    out.add(value);
    return false;
  };
  auto rest = parse_json(text, file, {.keep_object = take});
  if (!rest) {
    Error error = rest.error().front();
    if (error.hint.empty()) error.hint = "a whole trace; NaN and Infinity are no JSON";
    return failure(std::move(error));
  }
  if (rest->is_object() && rest->contains("deviceProperties")) {
    const SortedJson& devices = (*rest)["deviceProperties"];
    if (devices.is_array() && !devices.empty() && devices[0].is_object()) {
      out.device = event_text(devices[0], "name");
    }
  }
  out.link();
  return out;
}

}  // namespace stepcast
