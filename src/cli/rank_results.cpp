// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/gathered_errors.h"
#include "core/read_rows.h"
#include "core/text/escape.h"
#include "operation/signature.h"

namespace stepcast::cli {
namespace {

// One kernel that several ranks have measured: the mean of what each of them saw.
MeasuredOperation mean_of_ranks(const std::vector<MeasuredOperation>& all) {
  MeasuredOperation out = all.front();
  Measurement& sum = out.measurement;
  const double part = 1 / static_cast<double>(all.size());
  double variance_s2 = 0;
  sum = {};
  for (const MeasuredOperation& one : all) {
    const Measurement& m = one.measurement;
    sum.median_s += part * m.median_s;
    sum.mean_s += part * m.mean_s;
    sum.p10_s += part * m.p10_s;
    sum.p90_s += part * m.p90_s;
    variance_s2 += part * m.deviation_s * m.deviation_s;
    sum.halves = std::max(sum.halves, m.halves);
    sum.n += m.n;
    sum.rejected += m.rejected;
    sum.stopped = std::max(sum.stopped, m.stopped);
  }
  sum.deviation_s = std::sqrt(variance_s2);
  return out;
}

}  // namespace

void RankResults::read(const std::filesystem::path& file, Errors& errors) {
  auto document = JsonDocument::load(file.string());
  if (!document) {
    append(errors, document.error());
    return;
  }
  read(**document);
  append(errors, (*document)->errors());
}

void RankResults::read(JsonDocument& document) {
  ObjectReader root(document.root());
  root.ignore("rank");
  if (const auto operations = root.required("operations")) {
    for (const JsonValue& value : operations->items()) read_operation_point(value);
  }
  if (const auto collectives = root.required("collectives")) {
    for (const JsonValue& value : collectives->items()) read_collective(value);
  }
  if (const auto memory = root.value("host_memory")) {
    host_memory_ = read_object<HostMemory>(*memory);
  }
  root.finish();
}

void RankResults::move_to(std::vector<MeasuredOperation>& operations,
                          std::vector<MeasuredCollective>& collectives) {
  for (auto& [key, all] : operations_) operations.push_back(mean_of_ranks(all));
  for (auto& [key, collective] : collectives_) collectives.push_back(std::move(collective));
}

void RankResults::read_operation_point(const JsonValue& value) {
  ObjectReader reader(value);
  const auto operation = reader.required("operation");
  const auto measurement = reader.required("measurement");
  if (!operation || !measurement) return;
  MeasuredOperation point{read_operation(*operation, names_), read_measurement(*measurement)};
  if (const auto condition = reader.value("condition")) {
    point.condition = read_gpu_condition(*condition);
  }
  if (reader.value("kernel")) point.kernel = reader.required_text("kernel");
  if (const auto other = reader.value("other")) point.other = read_object<OtherKernel>(*other);
  std::string key = signature(point.operation);
  auto& all = operations_[key];
  if (of_this_launch_.insert(std::move(key)).second) all.clear();
  all.push_back(std::move(point));
  reader.finish();
}

void RankResults::read_collective(const JsonValue& value) {
  auto out = read_object<MeasuredCollective>(value);
  // Groups that are placed alike share one curve, whatever they are for.
  const std::string key = fmt::format("{} {} {}", static_cast<int>(out.kind),
                                      json_text(SortedJson(out.placement)), out.concurrent);
  MeasuredCollective& known = collectives_[key];
  if (of_this_launch_.insert(key).second) {
    known = std::move(out);
  } else {
    known.points.insert(known.points.end(), out.points.begin(), out.points.end());
    if (out.stretch > known.stretch) {  // measured beside kernels, where the other never is
      known.cpu_share = out.cpu_share;
      known.stretch = out.stretch;
    }
  }
}

}  // namespace stepcast::cli
