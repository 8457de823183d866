// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/breakdown.h"
#include "report/html/pipeline_picture.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast::html {

Section pipeline_section(const Prediction& prediction) {
  const std::vector<bool> drawn = classes_of_one_pipeline(prediction);
  std::map<std::int32_t, std::vector<const TraceSlice*>> slices;
  for (const TraceSlice& slice : prediction.slices) {
    if (drawn[static_cast<std::size_t>(slice.rank_class)]) {
      slices[slice.rank_class].push_back(&slice);
    }
  }
  PipelinePicture picture;
  picture.id = "pipeline-picture";
  picture.length = prediction.step_time.value();
  std::map<std::int32_t, PipelineRow> by_stage;
  for (const auto& [c, own] : slices) {
    const RankClass& rank_class = prediction.rank_classes[static_cast<std::size_t>(c)];
    PipelineRow row = pipeline_row(own);
    row.name = fmt::format("stage {}", rank_class.stage);
    if (slices.size() > 1) row.note = percent_text(rank_class.bubble_fraction);
    for (const PassBox& box : row.boxes) picture.length = std::max(picture.length, box.end);
    by_stage[rank_class.stage] = std::move(row);
  }
  for (auto& [stage, row] : by_stage) picture.rows.push_back(std::move(row));
  picture.label =
      fmt::format("One step of {}, a row per pipeline stage", time_text(prediction.step_time));
  // One stage alone waits for no other.
  const char* bubble = slices.size() > 1 ? ", with its bubble" : "";
  return {"pipeline", "The pipeline over one step",
          pipeline_picture(picture) +
              note(fmt::format("Each row is the lowest rank of a stage{}; numbers are "
                               "micro-batches. Rest on a box for its times, zoom for its number.",
                               bubble))};
}

}  // namespace stepcast::html
