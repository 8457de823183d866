// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/html/compare_sections.h"
#include "report/html/pipeline_picture.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

PipelinePicture picture_of(const Prediction& prediction) {
  PipelinePicture out;
  out.id = "pipeline-picture";
  out.rows = pipeline_rows(prediction);
  out.length = length_of(prediction, out.rows);
  out.label =
      fmt::format("One step of {}, a row per pipeline stage", time_text(prediction.step_time));
  return out;
}

}  // namespace

Section pipeline_section(const Prediction& prediction) {
  const PipelinePicture picture = picture_of(prediction);
  // One stage alone waits for no other.
  const char* bubble = picture.rows.size() > 1 ? ", with its bubble" : "";
  return {"pipeline", "The pipeline over one step",
          pipeline_picture(picture) +
              note(fmt::format("Each row is the lowest rank of a stage{}; numbers are "
                               "micro-batches. Rest on a box for its times, zoom for its number.",
                               bubble))};
}

// All on one time axis, so that what one step has more of is seen.
Section pipelines_section(const CompareReport& report) {
  std::vector<PipelinePicture> pictures;
  double longest = 0;
  Html out;
  for (const std::size_t index : with_pipelines(report)) {
    const ComparedPoint& point = report.points[index];
    PipelinePicture picture = picture_of(*point.prediction);
    picture.id = fmt::format("pipeline-picture-{}", index + 1);
    picture.label = fmt::format("{}: {}", point_text(report, point), picture.label);
    longest = std::max(longest, picture.length);
    pictures.push_back(std::move(picture));
  }
  for (PipelinePicture& picture : pictures) {
    picture.length = longest;
    out += element("h3", {}, picture.label) + pipeline_picture(picture);
  }
  return {"pipelines", "The pipelines over one step",
          out + note("All have one time axis. Each row is the lowest rank of a stage with its "
                     "bubble; numbers are micro-batches.")};
}

}  // namespace stepcast::html
