// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/trace_events.h"

#include <algorithm>
#include <cmath>

#include "core/json_tree.h"
#include "core/parse_json.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

// Operators around one another, as far as they are followed. Programs nest some dozens.
constexpr int kMostAround = 1000;

// 0 for what is no number: a trace has events of many writers.
double number(const SortedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::int64_t id(const SortedJson& args, const char* key) {
  const auto found = args.find(key);
  return found != args.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

std::string text_of(const SortedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string thread_of(const SortedJson& event) {
  const auto part = [&](const char* key) {
    const auto found = event.find(key);
    return found == event.end() ? std::string() : json_text(*found);
  };
  return part("pid") + "/" + part("tid");
}

std::vector<std::int64_t> integers_of(const SortedJson& list) {
  std::vector<std::int64_t> out;
  if (!list.is_array()) return out;
  for (const SortedJson& one : list) {
    if (one.is_number_integer()) out.push_back(one.get<std::int64_t>());
  }
  return out;
}

std::vector<std::string> texts_of(const SortedJson& args, const char* key) {
  std::vector<std::string> out;
  const auto found = args.find(key);
  if (found == args.end() || !found->is_array()) return out;
  for (const SortedJson& one : *found) out.push_back(one.is_string() ? one.get<std::string>() : "");
  return out;
}

// A list, or the text of one.
std::vector<std::int64_t> ranks_of(const SortedJson& args) {
  const auto found = args.find("Process Group Ranks");
  if (found == args.end()) return {};
  if (!found->is_string()) return integers_of(*found);
  const auto list = parse_json(found->get_text(), "");
  return list ? integers_of(*list) : std::vector<std::int64_t>{};
}

TraceOperator operator_in(const SortedJson& event, const SortedJson& args) {
  TraceOperator out;
  out.name = text_of(event, "name");
  out.thread = thread_of(event);
  out.begin_us = number(event, "ts");
  out.end_us = out.begin_us + number(event, "dur");
  out.external_id = id(args, "External id");
  out.sequence = id(args, "Sequence number");
  if (const auto dims = args.find("Input Dims"); dims != args.end() && dims->is_array()) {
    for (const SortedJson& one : *dims) out.dims.push_back(integers_of(one));
  }
  out.types = texts_of(args, "Input type");
  out.concrete = texts_of(args, "Concrete Inputs");
  return out;
}

TraceKernel kernel_in(const SortedJson& event, const SortedJson& args) {
  TraceKernel out;
  out.name = text_of(event, "name");
  out.seconds = number(event, "dur") * 1e-6;
  out.external_id = id(args, "External id");
  out.correlation = id(args, "correlation");
  out.collective = text_of(args, "Collective name");
  out.type = text_of(args, "dtype");
  out.elements_in = id(args, "In msg nelems");
  out.elements_out = id(args, "Out msg nelems");
  out.group_size = id(args, "Group size");
  out.ranks = ranks_of(args);
  return out;
}

}  // namespace

void TraceEvents::add(const SortedJson& event) {
  const std::int64_t place = events_++;
  if (text_of(event, "ph") != "X") return;
  const std::string kind = text_of(event, "cat");
  static const SortedJson kNone = SortedJson::object();
  const auto found = event.find("args");
  const SortedJson& args = found == event.end() || !found->is_object() ? kNone : *found;
  if (kind == "cpu_op") {
    operators.push_back(operator_in(event, args));
    operators.back().event = place;
  } else if (kind == "kernel") {
    TraceKernel kernel = kernel_in(event, args);
    kernel.event = place;
    const bool timed = std::isfinite(kernel.seconds) && kernel.seconds > 0;
    (timed ? kernels : without_time).push_back(std::move(kernel));
  } else if (kind == "cuda_runtime" || kind == "cuda_driver") {
    const TraceLaunch launch{thread_of(event), number(event, "ts")};
    if (const std::int64_t correlation = id(args, "correlation"); correlation >= 0) {
      by_correlation_[correlation] = launch;
    }
    by_external_id_[id(args, "External id")].push_back(launch);
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
      out.device = text_of(devices[0], "name");
    }
  }
  out.link();
  return out;
}

}  // namespace stepcast
