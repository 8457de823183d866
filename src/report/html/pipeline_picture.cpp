// SPDX-License-Identifier: Apache-2.0
#include "report/html/pipeline_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "program/block.h"
#include "report/html/legend.h"
#include "report/html/page.h"
#include "report/html/time_axis.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

constexpr std::size_t kMostBoxes = 3000;  // about half a megabyte of page
constexpr double kRowHeight = 26, kBoxHeight = 18, kLaneHeight = 4;
constexpr double kAxisHeight = 20;
constexpr double kUsualWidth = 860;  // pixels, at which numbers are fitted into boxes
constexpr std::size_t kDense = 150;  // boxes in a row, whose outlines would cover them
constexpr std::array kZooms{1, 2, 4, 8, 16, 32, 64};

// Cuts passes out when they are too many to draw: the first and the last stay, as there is room.
std::optional<TimeAxis::Cut> cut_of(const PipelinePicture& picture) {
  std::vector<double> starts, ends;
  for (const PipelineRow& row : picture.rows) {
    for (const PassBox& box : row.boxes) {
      starts.push_back(box.start);
      ends.push_back(box.end);
    }
  }
  if (starts.size() <= kMostBoxes) return std::nullopt;
  const auto half = static_cast<std::ptrdiff_t>(kMostBoxes / 2);
  std::nth_element(starts.begin(), starts.begin() + half, starts.end());
  std::nth_element(ends.begin(), ends.end() - half, ends.end());
  const TimeAxis::Cut cut{starts[kMostBoxes / 2], ends[ends.size() - kMostBoxes / 2]};
  if (cut.end <= cut.begin) return std::nullopt;
  return cut;
}

// The first zoom at which a number of so many digits fits into its box.
int zoom_for(double share, std::size_t digits) {
  const double needed = 6.4 * static_cast<double>(digits) + 1;
  for (const int zoom : kZooms) {
    if (share * kUsualWidth * zoom >= needed) return zoom;
  }
  return 0;
}

bool is_dense(const PipelinePicture& picture) {
  return std::any_of(picture.rows.begin(), picture.rows.end(),
                     [](const PipelineRow& row) { return row.boxes.size() > kDense; });
}

// A row of more passes than can be told apart opens at the zoom at which passes of half the time
// have their numbers, and at the step's begin: there the pipeline fills.
int first_zoom(const PipelinePicture& picture, const TimeAxis& axis) {
  if (!is_dense(picture)) return kZooms.front();
  std::map<int, double> times;  // by zoom
  double all = 0;
  for (const PipelineRow& row : picture.rows) {
    for (const PassBox& box : row.boxes) {
      if (box.micro_batch < 0 || box.communication || !axis.shows(box.start, box.end)) continue;
      const double share = axis.share(box.end) - axis.share(box.start);
      const int zoom = zoom_for(share, fmt::format("{}", box.micro_batch).size());
      times[zoom > 0 ? zoom : kZooms.back()] += share;
      all += share;
    }
  }
  double numbered = 0;
  for (const auto& [zoom, time] : times) {
    numbered += time;
    if (numbered >= all / 2) return zoom;
  }
  return kZooms.front();
}

std::string title_of(const PassBox& box) {
  std::string phase = box.communication ? box.name : name_of(box.phase);
  std::replace(phase.begin(), phase.end(), '_', ' ');
  std::string out = phase;
  if (box.micro_batch >= 0) out += fmt::format(" of micro-batch {}", box.micro_batch);
  if (box.chunk > 0) out += fmt::format(", chunk {}", box.chunk);
  return out + fmt::format(": {} from {}", time_text(Seconds(box.end - box.start)),
                           time_text(Seconds(box.start)));
}

Html draw_box(const PassBox& box, const TimeAxis& axis, double y) {
  const double left = axis.share(box.start), width = axis.share(box.end) - left;
  std::string css = box.communication ? "communication" : css_class_of(box.phase);
  if (box.chunk % 2 == 1) css += " odd";
  Html out = element("rect",
                     {{"class", "box " + css},
                      {"x", percent_of_width(left)},
                      {"y", coordinate(y)},
                      {"width", percent_of_width(width)},
                      {"height", coordinate(kBoxHeight)}},
                     element("title", {}, title_of(box)));
  if (box.micro_batch < 0 || box.communication) return out;
  const std::string number = fmt::format("{}", box.micro_batch);
  if (const int zoom = zoom_for(width, number.size()); zoom > 0) {
    out += element("text",
                   {{"class", fmt::format("n n{}", zoom)},
                    {"x", percent_of_width(left + width / 2)},
                    {"y", coordinate(y + kBoxHeight - 5)}},
                   number);
  }
  return out;
}

// One path in a space of its own that stretches with the picture.
Html draw_traffic(const PipelineRow& row, const TimeAxis& axis, double y) {
  constexpr double kUnits = 20000;
  std::string path;
  double drawn = -1;  // nothing narrower than a unit after the one before it
  for (const DrawnSpan& span : row.traffic) {
    if (!axis.shows(span.start, span.end)) continue;
    const double left = std::max(axis.share(span.start) * kUnits, drawn);
    const double right = std::max(axis.share(span.end) * kUnits, left + 1);
    if (left < drawn + 1 && right <= drawn + 1) continue;
    path += fmt::format("M{:.0f} 0H{:.0f}V4H{:.0f}z", left, right, left);
    drawn = right;
  }
  if (path.empty()) return {};
  return element("svg",
                 {{"x", "0"},
                  {"y", coordinate(y)},
                  {"width", "100%"},
                  {"height", coordinate(kLaneHeight)},
                  {"viewBox", fmt::format("0 0 {:.0f} 4", kUnits)},
                  {"preserveAspectRatio", "none"}},
                 element("path", {{"class", "communication"}, {"d", path}}));
}

Html draw_cut(const TimeAxis& axis, double height) {
  if (!axis.cut()) return {};
  const double left = axis.share(axis.cut()->begin), right = axis.share(axis.cut()->end);
  return element("rect", {{"class", "cut"},
                          {"x", percent_of_width(left)},
                          {"y", "0"},
                          {"width", percent_of_width(right - left)},
                          {"height", coordinate(height)}}) +
         element("text",
                 {{"class", "middle"},
                  {"x", percent_of_width((left + right) / 2)},
                  {"y", coordinate(height / 2 + 4)}},
                 "⋯");
}

Html draw_names(const PipelinePicture& picture, double height) {
  Html out;
  for (std::size_t i = 0; i < picture.rows.size(); ++i) {
    const double y = static_cast<double>(i) * kRowHeight + kBoxHeight - 4;
    out += element("text", {{"x", "0"}, {"y", coordinate(y)}}, picture.rows[i].name);
    out += element("text", {{"class", "soft end long"}, {"x", "100%"}, {"y", coordinate(y)}},
                   picture.rows[i].note);
  }
  return element("div", {{"class", "names"}, {"aria-hidden", "true"}},
                 element("svg", {{"height", coordinate(height + kAxisHeight)}}, out));
}

Html zoom_bar(const std::string& id, int zoom) {
  const auto button = [](const char* shown, const char* label) {
    return element("button", {{"type", "button"}, {"aria-label", label}}, shown);
  };
  return element(
      "div", {{"class", "bar zoom needs-script"}, {"data-for", id}},
      button("−", "Zoom out") + button("Whole step", "Show the whole step") +
          button("+", "Zoom in") +
          element("span", {{"class", "count"}, {"role", "status"}}, fmt::format("{}×", zoom)));
}

Html legend_of(const PipelinePicture& picture) {
  std::set<Phase> phases;
  bool odd = false, communication = false, traffic = false;
  for (const PipelineRow& row : picture.rows) {
    traffic = traffic || !row.traffic.empty();
    for (const PassBox& box : row.boxes) {
      if (!box.communication) phases.insert(box.phase);
      communication = communication || box.communication;
      odd = odd || box.chunk % 2 == 1;
    }
  }
  std::vector<LegendEntry> entries;
  for (const Phase phase : phases) {
    std::string name = name_of(phase);
    std::replace(name.begin(), name.end(), '_', ' ');
    entries.push_back({css_class_of(phase), name});
  }
  if (odd) entries.push_back({"forward odd", "paler: every second chunk of a stage"});
  if (communication || traffic) {
    entries.push_back(
        {"communication", traffic ? "communication (thin: beside the passes)" : "communication"});
  }
  return legend(entries);
}

std::string cut_note(const PipelinePicture& picture, const TimeAxis& axis) {
  std::size_t hidden = 0;
  for (const PipelineRow& row : picture.rows) {
    hidden += static_cast<std::size_t>(
        std::count_if(row.boxes.begin(), row.boxes.end(),
                      [&](const PassBox& box) { return !axis.shows(box.start, box.end); }));
  }
  return fmt::format("Folded at ⋯: {} passes from {} to {} are left out.", hidden,
                     time_text(Seconds(axis.cut()->begin)), time_text(Seconds(axis.cut()->end)));
}

}  // namespace

Html pipeline_picture(const PipelinePicture& picture) {
  const TimeAxis axis(picture.length, cut_of(picture));
  const double height = static_cast<double>(picture.rows.size()) * kRowHeight;
  Html drawing = axis.ticks(height);
  for (std::size_t i = 0; i < picture.rows.size(); ++i) {
    const double y = static_cast<double>(i) * kRowHeight;
    for (const PassBox& box : picture.rows[i].boxes) {
      if (axis.shows(box.start, box.end)) drawing += draw_box(box, axis, y);
    }
    drawing += draw_traffic(picture.rows[i], axis, y + kBoxHeight + 1) + text("\n");
  }
  drawing += draw_cut(axis, height);
  const int zoom = first_zoom(picture, axis);
  const Html rows =
      element("svg",
              {{"id", picture.id},
               {"class", fmt::format("zoom-{}{}", zoom, is_dense(picture) ? " dense" : "")},
               {"height", coordinate(height + kAxisHeight)},
               {"role", "img"},
               {"aria-label", picture.label}},
              drawing);
  Html out = legend_of(picture) + zoom_bar(picture.id, zoom) +
             element("div", {{"class", "pipeline"}},
                     draw_names(picture, height) + element("div",
                                                           {{"class", "rows"},
                                                            {"tabindex", "0"},
                                                            {"role", "region"},
                                                            {"aria-label", picture.label}},
                                                           rows));
  if (axis.cut()) out += note(cut_note(picture, axis));
  return element("figure", {}, out);
}

}  // namespace stepcast::html
