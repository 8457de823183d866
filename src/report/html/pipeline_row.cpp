// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "report/html/pipeline_picture.h"

namespace stepcast::html {
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

std::vector<TimeSpan> traffic_of(const std::vector<const TraceSlice*>& slices) {
  std::vector<TimeSpan> out;
  for (const TraceSlice* slice : slices) {
    if (slice->stream == Stream::kCompute || slice->stream == Stream::kHost) continue;
    const TimeSpan span{slice->start.value(), (slice->start + slice->duration).value()};
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

}  // namespace stepcast::html
