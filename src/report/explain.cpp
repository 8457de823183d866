// SPDX-License-Identifier: Apache-2.0
#include "report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "cost/profile.h"
#include "cost/provenance.h"
#include "layout/read_scenario.h"
#include "predict/prediction.h"
#include "report/document_form.h"
#include "report/number_text.h"
#include "report/prediction_json.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

struct CurveBasis {
  const char* name;
  std::string basis;
  double sigma;
};

double sigma_of(const Profile& profile, Curve curve) {
  return profile.sigma[static_cast<std::size_t>(curve)];
}

std::vector<CurveBasis> curves_of(const Profile& profile) {
  const auto sigma = [&](Curve curve) { return sigma_of(profile, curve); };
  return {
      {"gemm",
       profile.gemm_samples.empty()
           ? std::string("tile and wave quantisation at the usual share of the dense peak")
           : fmt::format("{} products of this device, tile and wave quantisation between them",
                         profile.gemm_samples.size()),
       sigma(Curve::kGemm)},
      {"attention", "fused kernel's share of the dense peak by length, width and occupancy",
       sigma(Curve::kAttention)},
      {"memory_bound", "bytes over achieved bandwidth, and a fixed part per kernel",
       sigma(Curve::kMemoryBound)},
      {"host", "interval per launch and call of the framework, fixed part per step",
       sigma(Curve::kHost)},
      {"collective", "NCCL's choice of algorithm and protocol routed over the topology graph",
       sigma(Curve::kCollective)},
      {"point_to_point", "the path's narrowest link and its latency", sigma(Curve::kPointToPoint)},
  };
}

struct Formula {
  const char* name;
  const char* text;
};

std::vector<Formula> formulas() {
  return {
      {"step_time", "time between the ends of two successive optimizer steps of the replay"},
      {"step_time_low, step_time_high",
       "central 90 %: the errors of recorded runs where the same mechanisms were at work, and "
       "at least sum over curves of (share of the critical path x sigma)^2 in ln T"},
      {"tokens_per_s", "global_batch x sequence_length / step_time"},
      {"model_flops",
       "3 x forward: every GEMM once per token, logits included, and attention "
       "4 x sequence x heads x head_dim per token and layer; padding and recompute not counted"},
      {"mfu", "model_flops / (step_time x GPUs x dense peak of the precision)"},
      {"mfu_causal", "as mfu, with attention counted as a causal mask leaves it: half"},
      {"hfu", "as mfu, with recomputed GEMMs and attention"},
      {"bubble_fraction",
       "1 - mean over ranks of (busy + exposed tp, cp, ep, dp inside the span) / largest span"},
      {"time_s",
       "each instant of the critical rank goes to the first of: compute, recompute, "
       "optimizer, the exposed operation it waits for, bubble, other"},
      {"peak_memory_bytes", "largest sum of living tensors in the replay"},
      {"peak_reserved_bytes",
       "peak_memory_bytes and the caching allocator's rounding and "
       "fragmentation"},
      {"peak_device_bytes", "peak_reserved_bytes and the framework's fixed part (context, NCCL)"},
  };
}

std::vector<std::string> provenance_lines(const Prediction& prediction) {
  std::vector<std::string> out;
  for (int i = 0; i < kProvenances; ++i) {
    out.push_back(fmt::format("{} {}", name_of(static_cast<Provenance>(i)),
                              percent_text(prediction.provenance[static_cast<std::size_t>(i)])));
  }
  return out;
}

// A row for each message of each stage; stages that send the same share it.
TextTable collective_table(const Prediction& prediction) {
  TextTable table({{"collective", Align::kLeft},
                   {"over", Align::kLeft},
                   {"stages", Align::kLeft},
                   {"ranks"},
                   {"bytes"},
                   {"times"},
                   {"each"},
                   {"algorithm", Align::kLeft},
                   {"channels"},
                   {"curve", Align::kLeft},
                   {"bound by", Align::kLeft}});
  std::vector<std::pair<std::vector<std::string>, std::vector<std::int32_t>>> rows;
  for (const SentCollective& one : prediction.collectives) {
    std::vector<std::string> cells{
        one.kind,
        one.group,
        fmt::format("{}", one.ranks),
        fmt::format("{}", one.bytes),
        fmt::format("{:g}", one.times),
        time_text(one.time),
        one.algorithm + (one.protocol.empty() ? "" : "/" + one.protocol),
        one.channels > 0 ? fmt::format("{}", one.channels) : "",
        one.curve.empty() ? "nominal" : one.curve,
        one.bound_by.empty() ? "" : fmt::format("{} ({})", one.bound_by, percent_text(one.full))};
    const auto known = std::ranges::find(rows, cells, &decltype(rows)::value_type::first);
    if (known == rows.end()) {
      rows.emplace_back(std::move(cells), std::vector{one.stage});
    } else {
      known->second.push_back(one.stage);
    }
  }
  for (auto& [cells, stages] : rows) {
    const bool in_a_row = stages.size() > 2 && stages.back() - stages.front() + 1 ==
                                                   static_cast<std::int32_t>(stages.size());
    cells.insert(cells.begin() + 2, in_a_row ? fmt::format("{}-{}", stages.front(), stages.back())
                                             : fmt::format("{}", fmt::join(stages, ",")));
    table.add_row(std::move(cells));
  }
  return table;
}

// "vtrain-single-0022" without its number: runs of one suite.
std::string family_of(const std::string& source) {
  const std::size_t end = source.find_last_not_of("0123456789");
  return end == source.npos ? "" : source.substr(0, end + 1);
}

// Runs of one suite that follow each other share a line.
std::vector<std::string> fitted_lines(const Profile& profile) {
  std::vector<std::string> out;
  const std::vector<std::string>& sources = profile.fitted_on;
  for (std::size_t i = 0; i < sources.size();) {
    const std::string family = family_of(sources[i]);
    std::size_t end = i + 1;
    while (end < sources.size() && family != sources[i] && family_of(sources[end]) == family) ++end;
    out.push_back(end - i > 2
                      ? fmt::format("fitted on {} runs, {} to {} (--format json lists them)",
                                    end - i, sources[i], sources[end - 1])
                      : "fitted on " + sources[i]);
    i = end - i > 2 ? end : i + 1;
  }
  return out;
}

// The text as lines of a terminal's width, below a name.
std::string indented(std::string_view text) {
  constexpr std::size_t kWidth = 96;
  std::string out, line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      out += "  " + std::exchange(line, "") + "\n";
    }
    line += (line.empty() ? "" : " ") + std::string(word);
    begin = end + 1;
  }
  return out + "  " + line + "\n";
}

}  // namespace

Written explanation_text(const Scenario& scenario, const Prediction& prediction,
                         const Profile& profile) {
  const auto printed = [](std::string_view words) { return line(words, Form::kText); };
  Written out = "Resolved scenario\n" + json_file(to_json(scenario), 2) + "\n";
  out += printed(fmt::format("Costs: profile {} of {} ({})", profile.name, profile.device,
                             name_of(profile.provenance)));
  TextTable curves({{"curve", Align::kLeft}, {"log-error"}, {"based on", Align::kLeft}});
  for (const CurveBasis& curve : curves_of(profile)) {
    curves.add_row({curve.name, percent_text(curve.sigma), curve.basis});
  }
  out += curves.text();
  for (const std::string& one : fitted_lines(profile)) out += printed(one);
  out += "\nOf the critical path's busy time\n";
  for (const std::string& one : provenance_lines(prediction)) out += printed(one);
  if (!prediction.collectives.empty()) {
    out += "\nWhat a step sends, and how\n" + collective_table(prediction).text();
  }
  out += "\nDefinitions\n";
  for (const Formula& formula : formulas()) {
    out += printed(formula.name) + terminal_lines(indented(formula.text));
  }
  return out;
}

Json explanation_object(const Profile& profile) {
  Json out;
  Json& source = out["profile"];
  source["name"] = profile.name;
  source["device"] = profile.device;
  source["provenance"] = name_of(profile.provenance);
  source["fitted_on"] = profile.fitted_on;
  out["curves"] = Json::array();
  for (const CurveBasis& curve : curves_of(profile)) {
    Json entry;
    entry["curve"] = curve.name;
    put(entry, "log_error", curve.sigma);
    entry["based_on"] = curve.basis;
    out["curves"].push_back(std::move(entry));
  }
  out["formulas"] = Json::object();
  for (const Formula& formula : formulas()) out["formulas"][formula.name] = formula.text;
  return out;
}

}  // namespace stepcast
