// SPDX-License-Identifier: Apache-2.0
#include "report/pipeline_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/breakdown.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

PassBox box_of(const TraceSlice& slice) {
  return {slice.start.value(), (slice.start + slice.duration).value(),
          slice.phase,         slice.micro_batch,
          slice.chunk,         slice.collective,
          slice.name};
}

// Work of no micro-batch between two pieces of a pass (gradients cast for their reduction) is part
// of it.
bool goes_on(const PassBox& pass, const PassBox& next) {
  const bool same = pass.micro_batch == next.micro_batch && pass.chunk == next.chunk;
  return pass.phase == next.phase && pass.communication == next.communication &&
         (same || next.micro_batch < 0);
}

// Rounding may take this from the start of a pass that follows another: half a picosecond.
constexpr double kRounding = 0.5e-12;

// Passes alone: their operations lie inside them, recorded after them.
std::vector<PassBox> passes_of(const std::vector<const TraceSlice*>& slices) {
  std::vector<PassBox> out;
  double end = -1;
  for (const TraceSlice* slice : slices) {
    if (slice->stream != Stream::kCompute) continue;
    const PassBox box = box_of(*slice);
    if (box.start < end - kRounding && !out.empty()) continue;
    end = box.end;
    const double gap = out.empty() ? 0 : box.start - out.back().end;
    if (!out.empty() && goes_on(out.back(), box) && gap < 0.1 * (box.end - box.start)) {
      out.back().end = box.end;
    } else {
      out.push_back(box);
    }
  }
  return out;
}

std::vector<DrawnSpan> traffic_of(const std::vector<const TraceSlice*>& slices) {
  std::vector<DrawnSpan> out;
  for (const TraceSlice* slice : slices) {
    if (slice->stream == Stream::kCompute || slice->stream == Stream::kHost) continue;
    const DrawnSpan span{slice->start.value(), (slice->start + slice->duration).value()};
    if (!out.empty() && span.start <= out.back().end) {
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

}  // namespace

PipelineRow pipeline_row(const std::vector<const TraceSlice*>& slices) {
  std::vector<const TraceSlice*> ordered = slices;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const TraceSlice* a, const TraceSlice* b) { return a->start < b->start; });
  PipelineRow out;
  out.boxes = passes_of(ordered);
  out.traffic = traffic_of(ordered);
  return out;
}

std::vector<PipelineRow> pipeline_rows(const Prediction& prediction) {
  const std::vector<bool> drawn = classes_of_one_pipeline(prediction);
  std::map<std::int32_t, std::vector<const TraceSlice*>> slices;
  for (const TraceSlice& slice : prediction.slices) {
    if (drawn[static_cast<std::size_t>(slice.rank_class)]) {
      slices[slice.rank_class].push_back(&slice);
    }
  }
  std::map<std::int32_t, PipelineRow> by_stage;
  for (const auto& [c, own] : slices) {
    const RankClass& rank_class = prediction.rank_classes[static_cast<std::size_t>(c)];
    PipelineRow row = pipeline_row(own);
    row.name = fmt::format("stage {}", rank_class.stage);
    if (slices.size() > 1) row.note = percent_text(rank_class.bubble_fraction);
    by_stage[rank_class.stage] = std::move(row);
  }
  std::vector<PipelineRow> out;
  for (auto& [stage, row] : by_stage) out.push_back(std::move(row));
  return out;
}

double length_of(const Prediction& prediction, const std::vector<PipelineRow>& rows) {
  double out = prediction.step_time.value();
  for (const PipelineRow& row : rows) {
    for (const PassBox& box : row.boxes) out = std::max(out, box.end);
  }
  return out;
}

}  // namespace stepcast
