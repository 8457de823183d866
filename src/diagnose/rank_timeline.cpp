// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rank_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "diagnose/step_windows.h"
#include "program/instruction.h"

namespace stepcast {
namespace {

std::string in_words(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::optional<Phase> phase_named(const std::string& name) {
  for (int i = 0; i < kPhases; ++i) {
    if (name == name_of(static_cast<Phase>(i))) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

ByteCount element_bytes(std::string_view type) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), type) != names.end();
  };
  if (is({"BFloat16", "Half"})) return 2;
  if (is({"Double", "Long"})) return 8;
  if (is({"Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2"})) return 1;
  return 4;
}

// The larger side counts, as in nccl-tests.
ByteCount bytes_of(const TraceMessage& message) {
  if (message.bytes >= 0) return message.bytes;
  const std::int64_t elements =
      std::clamp<std::int64_t>(std::max(message.elements_in, message.elements_out), 0, 1LL << 50);
  return elements * element_bytes(message.type);
}

const char* words_of_pass(Phase phase) {
  if (phase == Phase::kOptimizer) return "optimizer";
  return phase == Phase::kForward ? "forward passes" : "backward passes";
}

class Reader {
 public:
  Reader(const Trace& trace, const ForecastNames& names, LabelStyle style, Labels& labels,
         bool as_one_step)
      : trace_(trace), names_(names), style_(style), labels_(labels), as_one_step_(as_one_step) {}

  Timeline read(std::int32_t device, RankId rank) const {
    Timeline out;
    out.rank = rank;
    out.stage = names_.grid().point(rank).pp;
    for (const TraceWork& work : trace_.works) {
      if (work.device != device) continue;
      out.has_launches = out.has_launches || work.launched_us.has_value();
      out.activities.push_back(activity(work, rank));
    }
    for (const TraceWait& wait : trace_.waits) {
      out.host_waits.push_back({0, wait.begin_us * 1e-6, wait.end_us * 1e-6});
    }
    add_steps(trace_, device, {as_one_step_, names_.least_products()}, out);
    return out;
  }

 private:
  Activity activity(const TraceWork& work, RankId rank) const {
    Activity out;
    out.begin_s = work.begin_us * 1e-6;
    out.end_s = work.end_us * 1e-6;
    if (work.launched_us) out.launched_s = *work.launched_us * 1e-6;
    out.launch_end_s = work.launch_end_us * 1e-6;
    out.product = work.product;
    out.micro_batch = work.micro_batch;
    if (work.kind == TraceWorkKind::kCopy) {
      out.kind = ActivityKind::kCopy;
      out.label = labels_.add({trace_.name_of(work.name)});
    } else if (work.message >= 0) {
      const TraceMessage& message = trace_.messages[static_cast<std::size_t>(work.message)];
      out.kind = ActivityKind::kMessage;
      out.bytes = bytes_of(message);
      out.label = labels_.add(label_of(message, work, rank));
    } else {
      out.label = labels_.add(label_of_kernel(work));
      out.flops = flops_of(work);
    }
    return out;
  }

  double flops_of(const TraceWork& work) const {
    if (const auto* known = names_.find(trace_.name_of(work.name), phase_of(work))) {
      return known->product ? stepcast::flops_of(*known->product) : 0;
    }
    if (work.product < 0) return 0;
    const ProductShape& one = trace_.products[static_cast<std::size_t>(work.product)];
    return 2.0 * static_cast<double>(one.batch) * static_cast<double>(one.m) *
           static_cast<double>(one.n) * static_cast<double>(one.k);
  }

  std::string phase_of(const TraceWork& work) const {
    return work.phase >= 0 ? trace_.name_of(work.phase) : "";
  }

  Label label_of(const TraceMessage& message, const TraceWork& work, RankId rank) const {
    std::optional<NamedMessage> named;
    if (const auto* known = names_.find(message.collective, phase_of(work))) named = known->message;
    if (!named) named = names_.match(message, trace_.name_of(work.name), rank);
    Label out{named ? words_of(*named) : "other communication"};
    out.message = named;
    return out;
  }

  Label label_of_kernel(const TraceWork& work) const {
    const std::string& name = trace_.name_of(work.name);
    const Phase phase = phase_named(phase_of(work)).value_or(Phase::kForward);
    const NamedOperation* known = names_.find(name, phase_of(work));
    Label out;
    out.phase = phase;
    out.family = work.kind == TraceWorkKind::kFill ? KernelFamily::kMemoryBound
                 : known != nullptr                ? known->family
                                                   : family_of_kernel(name);
    switch (style_) {
      case LabelStyle::kOperations:
        out.words = fmt::format("{}, {}", in_words(name), in_words(name_of(phase)));
        return out;
      case LabelStyle::kWholePasses:
        out.words = words_of_pass(phase);
        return out;
      case LabelStyle::kProducts:
        out.words = product_words(work, known);
        if (!out.words.empty()) {
          out.family = KernelFamily::kProducts;
          return out;
        }
        break;
      case LabelStyle::kFamilies:
        break;
    }
    out.words = name_of(out.family);
    return out;
  }

  std::string product_words(const TraceWork& work, const NamedOperation* known) const {
    if (known != nullptr && known->product) {
      const Gemm& one = *known->product;
      return names_.products_of({one.batch, one.m, one.n, one.k});
    }
    if (work.product < 0) return "";
    return names_.products_of(trace_.products[static_cast<std::size_t>(work.product)]);
  }

  const Trace& trace_;
  const ForecastNames& names_;
  LabelStyle style_;
  Labels& labels_;
  bool as_one_step_;
};

// A forecast draws its passes around kernels; the executor's spans are whole passes.
bool has_passes_alone(const Trace& trace, const ForecastNames& names) {
  return std::ranges::none_of(trace.works, [&](const TraceWork& work) {
    return work.phase >= 0 && work.message < 0 && work.kind == TraceWorkKind::kKernel &&
           names.find(trace.name_of(work.name), trace.name_of(work.phase)) != nullptr;
  });
}

// Most of the products' time has a shape that the forecast has, too.
bool has_known_products(const Trace& trace, const ForecastNames& names) {
  double all = 0, known = 0;
  for (const TraceWork& work : trace.works) {
    if (work.message >= 0 || work.kind != TraceWorkKind::kKernel) continue;
    const bool multiplies = family_of_kernel(trace.name_of(work.name)) == KernelFamily::kProducts;
    if (!multiplies && work.product < 0) continue;
    all += work.end_us - work.begin_us;
    if (work.product < 0) continue;
    const ProductShape& shape = trace.products[static_cast<std::size_t>(work.product)];
    if (!names.products_of(shape).empty()) known += work.end_us - work.begin_us;
  }
  return all > 0 && known >= 0.8 * all;
}

Error twice(const Trace& trace, std::int64_t rank) {
  return {ErrorCode::kIllegal, fmt::format("is a second trace of rank {}", rank), trace.file,
          "distributedInfo.rank", "one trace per rank; a file's name may say it: rank3.json"};
}

}  // namespace

std::int32_t Labels::add(const Label& label) {
  const auto [found, fresh] =
      by_words_.emplace(label.words, static_cast<std::int32_t>(all_.size()));
  if (fresh) all_.push_back(label);
  return found->second;
}

LabelStyle style_for(const std::vector<Trace>& traces, const ForecastNames& names) {
  const auto all = [&](auto&& holds) { return std::ranges::all_of(traces, holds); };
  if (all([](const Trace& one) { return one.is_forecast; })) {
    const bool passes =
        std::ranges::any_of(traces, [&](const Trace& one) { return has_passes_alone(one, names); });
    return passes ? LabelStyle::kWholePasses : LabelStyle::kOperations;
  }
  const bool known = all([&](const Trace& one) { return has_known_products(one, names); });
  return known ? LabelStyle::kProducts : LabelStyle::kFamilies;
}

Result<std::vector<Timeline>> timelines_of(const std::vector<Trace>& traces,
                                           const ForecastNames& names, LabelStyle style,
                                           Labels& labels, bool as_one_step) {
  std::vector<Timeline> out;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const Trace& trace = traces[i];
    const bool by_process = trace.is_forecast || trace.devices.size() > 1;
    const Reader reader(trace, names, style, labels, as_one_step);
    for (std::size_t device = 0; device < trace.devices.size(); ++device) {
      const std::int64_t rank =
          by_process ? trace.devices[device] : trace.rank.value_or(static_cast<std::int64_t>(i));
      if (rank < 0 || rank >= names.grid().size()) {
        return failure(
            {ErrorCode::kIllegal,
             fmt::format("is of rank {}, and the layout has {} ranks", rank, names.grid().size()),
             trace.file, "distributedInfo.rank", "the scenario of the run that was traced"});
      }
      if (!seen.insert(rank).second) return failure(twice(trace, rank));
      out.push_back(
          reader.read(static_cast<std::int32_t>(device), RankId(static_cast<std::int32_t>(rank))));
    }
  }
  std::ranges::sort(out, {}, [](const Timeline& one) { return one.rank.value; });
  return out;
}

}  // namespace stepcast
