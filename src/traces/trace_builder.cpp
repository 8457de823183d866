// SPDX-License-Identifier: Apache-2.0
#include "traces/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "core/parse_json.h"
#include "core/work_limits.h"
#include "traces/event_fields.h"

namespace stepcast {
namespace {

constexpr double kLatest_us = 1e17;     // 3,000 years: a time beyond it is none
constexpr double kLongest_us = 1e11;    // a day of one kernel
constexpr std::size_t kPerEvent = 250;  // bytes: a work, its launch and their places in tables
constexpr std::string_view kStepMark = "ProfilerStep#";

bool is_among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool moves_data(std::string_view kernel) {
  return kernel.find("nccl") != std::string_view::npos ||
         kernel.find("rccl") != std::string_view::npos ||
         kernel.find("cross_device_reduce") != std::string_view::npos ||
         kernel.find("multimem_all_reduce") != std::string_view::npos ||
         kernel.find("nvshmem") != std::string_view::npos ||
         kernel.find("hybrid_ep") != std::string_view::npos;
}

// Calls of CUDA and HIP in which the host waits for the device.
bool waits(std::string_view call) { return call.find("ynchronize") != std::string_view::npos; }

// "rank-3.json.gz", "rank3_trace.json", "trace_rank_3.json": the first number behind "rank".
std::optional<std::int64_t> rank_in(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  std::size_t at = name.find("rank");
  if (at == std::string::npos) return std::nullopt;
  at += 4;
  while (at < name.size() && (name[at] == '-' || name[at] == '_')) ++at;
  std::int64_t out = 0;
  const char* end = name.data() + name.size();
  const auto [rest, bad] = std::from_chars(name.data() + at, end, out);
  return bad == std::errc() ? std::optional(out) : std::nullopt;
}

}  // namespace

TraceBuilder::TraceBuilder(const std::string& file) { out_.file = file; }

std::int32_t TraceBuilder::name(const std::string& text) {
  const auto [found, fresh] = names_.emplace(text, static_cast<std::int32_t>(out_.names.size()));
  if (fresh) {
    out_.names.push_back(text);
    held_ += 2 * text.size() + kPerEvent;
  }
  return found->second;
}

Error TraceBuilder::wrong(const RawEvent& event, std::string message) const {
  return {ErrorCode::kBadValue, std::move(message), out_.file,
          fmt::format("traceEvents[{}]", event.place), "the trace as the profiler wrote it"};
}

Error TraceBuilder::too_much() const {
  return {ErrorCode::kTooMuch,
          fmt::format("holds more events of kernels and launches than {:.2g} GB of memory can",
                      1e-9 * static_cast<double>(memory_limit())),
          out_.file, "traceEvents",
          "a trace of fewer steps, or a larger --memory-limit where the command has it"};
}

Errors TraceBuilder::take(const RawEvent& raw) {
  out_.events = raw.place + 1;
  if (raw.phase != "X") return {};
  const std::string_view kind = raw.category;
  const bool kernel = is_among(kind, {"kernel", "Kernel"});
  const bool copy = is_among(kind, {"gpu_memcpy", "Memcpy"});
  const bool fill = is_among(kind, {"gpu_memset", "Memset"});
  const bool launch = is_among(kind, {"cuda_runtime", "cuda_driver", "hip_runtime", "Runtime"});
  const ProductOperator* product =
      is_among(kind, {"cpu_op", "Operator"}) ? product_operator(raw.name) : nullptr;
  const bool step = kind == "user_annotation" && raw.name.starts_with(kStepMark);
  if (!kernel && !copy && !fill && !launch && product == nullptr && !step) return {};
  held_ += kPerEvent;
  if (held_ > static_cast<std::size_t>(memory_limit())) return {too_much()};
  auto event = parse_json(raw.text, out_.file);
  if (!event) {
    Error error = event.error().front();
    error.path = fmt::format("traceEvents[{}]", raw.place);
    if (error.hint.empty()) error.hint = "a whole trace; NaN and Infinity are no JSON";
    return {error};
  }
  if (launch) take_launch(*event);
  if (product != nullptr) take_product(*event, *product);
  if (step) take_step(*event);
  if (kernel) return take_work(raw, *event, TraceWorkKind::kKernel);
  if (copy) return take_work(raw, *event, TraceWorkKind::kCopy);
  if (fill) return take_work(raw, *event, TraceWorkKind::kFill);
  return {};
}

std::int32_t TraceBuilder::message_of(const SortedJson& args, const std::string& kernel) {
  TraceMessage out;
  out.collective = event_text(args, "Collective name");
  if (out.collective.empty() && !moves_data(kernel)) return TraceWork::kNone;
  out.type = event_text(args, "dtype");
  out.elements_in = event_id(args, "In msg nelems");
  out.elements_out = event_id(args, "Out msg nelems");
  out.group_size = event_id(args, "Group size");
  out.ranks = event_ranks(args);
  out.bytes = event_id(args, "bytes");
  out_.messages.push_back(std::move(out));
  return static_cast<std::int32_t>(out_.messages.size()) - 1;
}

Errors TraceBuilder::take_work(const RawEvent& raw, const SortedJson& event, TraceWorkKind kind) {
  const SortedJson& args = event_args(event);
  TraceWork work;
  work.kind = kind;
  const std::string words = event_text(event, "name");
  work.name = name(words);
  const double length = event_number(event, "dur");
  work.begin_us = event_number(event, "ts");
  work.end_us = work.begin_us + length;
  const bool timed = std::isfinite(work.begin_us) && std::isfinite(length) && length >= 0 &&
                     length <= kLongest_us && std::abs(work.begin_us) <= kLatest_us;
  if (!timed) {
    return {wrong(raw, fmt::format("'{}' has no time that a machine has: it begins at {:g} us and "
                                   "takes {:g} us",
                                   words, work.begin_us, length))};
  }
  const std::int64_t process = event_id(event, "pid");
  const auto [device, fresh] =
      devices_.emplace(process, static_cast<std::int32_t>(out_.devices.size()));
  if (fresh) out_.devices.push_back(process);
  work.device = device->second;
  work.stream =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(event_id(event, "tid"), -1, 1 << 30));
  if (const std::string phase = event_text(args, "phase"); !phase.empty()) {
    work.phase = name(phase);
    out_.is_forecast = true;
  }
  work.micro_batch = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(event_id(args, "micro_batch"), -1, 1 << 30));
  if (kind == TraceWorkKind::kKernel) work.message = message_of(args, words);
  out_.works.push_back(work);
  correlations_.push_back(event_id(args, "correlation"));
  return {};
}

void TraceBuilder::take_launch(const SortedJson& event) {
  const double begin = event_number(event, "ts"), length = event_number(event, "dur");
  const std::string call = event_text(event, "name");
  if (waits(call)) out_.waits.push_back({name(call), begin, begin + length});
  const std::int64_t correlation = event_id(event_args(event), "correlation");
  if (correlation >= 0) launches_[correlation] = {begin, begin + length, name(event_thread(event))};
}

void TraceBuilder::take_product(const SortedJson& event, const ProductOperator& of) {
  const auto shape = product_shape(of, event_dims(event_args(event)));
  if (!shape) return;
  const double begin = event_number(event, "ts");
  out_.products.push_back(*shape);
  products_[name(event_thread(event))].push_back(
      {begin, begin + event_number(event, "dur"),
       static_cast<std::int32_t>(out_.products.size()) - 1});
}

void TraceBuilder::take_step(const SortedJson& event) {
  const std::string words = event_text(event, "name");
  TraceStep step;
  const char* begin = words.data() + std::min(kStepMark.size(), words.size());
  std::from_chars(begin, words.data() + words.size(), step.number);
  step.process = event_id(event, "pid");
  step.begin_us = event_number(event, "ts");
  step.end_us = step.begin_us + event_number(event, "dur");
  if (step.end_us > step.begin_us) out_.steps.push_back(step);
}

std::int32_t TraceBuilder::product_at(const Launch& launch) const {
  const auto thread = products_.find(launch.thread);
  if (thread == products_.end()) return TraceWork::kNone;
  const std::vector<Product>& all = thread->second;
  auto after = std::upper_bound(all.begin(), all.end(), launch.begin_us,
                                [](double t, const Product& one) { return t < one.begin_us; });
  if (after == all.begin()) return TraceWork::kNone;
  --after;
  return after->end_us >= launch.begin_us ? after->shape : TraceWork::kNone;
}

void TraceBuilder::link() {
  for (auto& [thread, all] : products_) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Product& a, const Product& b) { return a.begin_us < b.begin_us; });
  }
  for (std::size_t i = 0; i < out_.works.size(); ++i) {
    const auto launch = launches_.find(correlations_[i]);
    if (correlations_[i] < 0 || launch == launches_.end()) continue;
    TraceWork& work = out_.works[i];
    work.launched_us = launch->second.begin_us;
    work.launch_end_us = launch->second.end_us;
    if (work.kind == TraceWorkKind::kKernel) work.product = product_at(launch->second);
  }
  std::stable_sort(out_.works.begin(), out_.works.end(),
                   [](const TraceWork& a, const TraceWork& b) { return a.begin_us < b.begin_us; });
  std::stable_sort(out_.steps.begin(), out_.steps.end(),
                   [](const TraceStep& a, const TraceStep& b) { return a.begin_us < b.begin_us; });
}

Result<Trace> TraceBuilder::finish(const SortedJson& head) {
  if (out_.works.empty()) {
    return failure({ErrorCode::kMissingKey, "holds no kernels", out_.file, "traceEvents",
                    "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"});
  }
  link();
  if (const auto devices = head.find("deviceProperties");
      devices != head.end() && devices->is_array() && !devices->empty() &&
      (*devices)[0].is_object()) {
    out_.device_name = event_text((*devices)[0], "name");
  }
  out_.rank = rank_in(out_.file);
  if (const auto run = head.find("distributedInfo"); run != head.end() && run->is_object()) {
    if (const std::int64_t rank = event_id(*run, "rank"); rank >= 0) out_.rank = rank;
  }
  return std::move(out_);
}

}  // namespace stepcast
