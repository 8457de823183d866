// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

#include "core/each.h"
#include "program/block.h"
#include "report/breakdown.h"
#include "report/html/legend.h"
#include "report/html/markup.h"
#include "report/html/memory_chart.h"
#include "report/html/page.h"
#include "report/html/pipeline_picture.h"
#include "report/html/scatter.h"
#include "report/html/time_axis.h"
#include "report/html/value_axis.h"
#include "report/html/views.h"
#include "report/made_prediction.h"
#include "report/number_text.h"
#include "report/prediction_table.h"

namespace stepcast::html {
namespace {

using stepcast::testing::made_prediction;
using stepcast::testing::made_scenario;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

boost::property_tree::ptree parsed(const std::string& markup) {
  std::istringstream in(markup);
  boost::property_tree::ptree tree;
  EXPECT_NO_THROW(boost::property_tree::read_xml(in, tree)) << markup.substr(0, 500);
  return tree;
}

TEST(Markup, TextAndAttributesAreEscaped) {
  EXPECT_EQ(text("<a href='x'>\"&").markup(), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
  EXPECT_EQ(element("p", {{"title", "a\"b<"}}, "x & <y>").markup(),
            "<p title=\"a&quot;b&lt;\">x &amp; &lt;y&gt;</p>");
}

TEST(Markup, WhatIsNotUtf8OrNoCharacterIsReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(text("µ € 𝛼").markup(), "µ € 𝛼");
  EXPECT_EQ(text("a\xFF"
                 "b")
                .markup(),
            "a" + bad + "b");
  EXPECT_EQ(text("\xC3").markup(), bad);                      // cut short
  EXPECT_EQ(text("\xC0\xBC").markup(), bad + bad);            // an overlong '<'
  EXPECT_EQ(text("\xED\xA0\x80").markup(), bad + bad + bad);  // a surrogate
  EXPECT_EQ(text(std::string("a\0b\x1B", 4)).markup(), "a" + bad + "b" + bad);
}

TEST(Markup, OnlyShapesAndVoidElementsCloseThemselves) {
  EXPECT_EQ(element("rect").markup(), "<rect/>");
  EXPECT_EQ(element("td").markup(), "<td></td>");
  EXPECT_EQ(coordinate(-0.001), "0");
  EXPECT_EQ(coordinate(12.50), "12.5");
  EXPECT_EQ(percent_of_width(1.0 / 3), "33.333%");
}

TEST(Page, HasAColourForEveryPartOfTheStep) {
  const std::string page = page_text({});
  for (const TimePart& part : each_of(parts_of(TimeParts{}))) {
    EXPECT_EQ(count_of(page, "." + time_class_of(part.key) + " {"), 1u) << part.key;
  }
}

// The bar is the interval itself, so that its ends are those of the step time.
TEST(PredictionPage, TheBarOfTheIntervalHasItsEnds) {
  const Prediction prediction = made_prediction();
  const std::string page = prediction_html(made_scenario(), prediction);
  const std::string first = "<p class=\"ends\"><span>" + time_text(prediction.step_time_low);
  ASSERT_EQ(count_of(page, first), 1u);
  EXPECT_EQ(count_of(page, "<span>" + time_text(prediction.step_time_high) + "</span></p>"), 1u);
}

TEST(TimeAxis, LeavesOutItsCutAndNothingElse) {
  const TimeAxis axis(10, TimeAxis::Cut{2, 8});
  EXPECT_DOUBLE_EQ(axis.share(0), 0);
  EXPECT_DOUBLE_EQ(axis.share(10), 1);
  // Two seconds of four before the cut, two after it, and the cut between.
  EXPECT_NEAR(axis.share(2), 1 - axis.share(8), 1e-12);
  EXPECT_NEAR(axis.share(1) * 2, axis.share(2), 1e-12);
  EXPECT_TRUE(axis.shows(1, 3));
  EXPECT_FALSE(axis.shows(3, 7));
  EXPECT_TRUE(axis.shows(7, 9));
}

TEST(TimeAxis, TicksAreRoundNumbers) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
}

TEST(ValueAxis, LogarithmicPlacesAreEvenInRatios) {
  const ValueAxis axis(ValueAxis::Scale::kLogarithmic, {1, 10000});
  EXPECT_NEAR(axis.place(100), 0.5, 1e-12);
  EXPECT_NEAR(axis.place(1000) - axis.place(100), axis.place(100) - axis.place(10), 1e-12);
  EXPECT_EQ(axis.ticks().size(), 5u);  // 1, 10, ..., 10000
}

TEST(ValueAxis, ANarrowLogarithmicAxisHasTicksToo) {
  const ValueAxis axis(ValueAxis::Scale::kLogarithmic, {6.4, 6.8});  // none at 1, 2 or 5
  EXPECT_GE(axis.ticks().size(), 3u);
  for (const double tick : axis.ticks()) {
    EXPECT_GE(axis.place(tick), 0);
    EXPECT_LE(axis.place(tick), 1);
  }
}

TEST(ValueAxis, ALinearAxisBeginsAtZeroWhereAValueIsNearIt) {
  const ValueAxis near(ValueAxis::Scale::kLinear, {1, 5});
  EXPECT_DOUBLE_EQ(near.place(0), 0);
  EXPECT_LT(near.place(5), 1);
  // A third of the way and more: the axis begins where the points are.
  const ValueAxis far(ValueAxis::Scale::kLinear, {3, 5});
  EXPECT_LT(far.place(0), 0);
  EXPECT_GT(far.place(3), 0);
  EXPECT_LT(far.place(3), 0.1);
  EXPECT_LT(far.place(5), 1);
}

TraceSlice slice(double start, double length, Phase phase, std::int32_t micro_batch,
                 Stream stream = Stream::kCompute) {
  return {0, stream, "pass", Seconds(start), Seconds(length), phase, micro_batch, 0, false, 0};
}

TEST(PipelineRow, IsPassesWithoutTheOperationsInsideThem) {
  const std::vector<TraceSlice> slices{slice(0, 2, Phase::kForward, 0),
                                       slice(0, 1, Phase::kForward, 0),  // its operations
                                       slice(1, 1, Phase::kForward, 0),
                                       slice(2, 2, Phase::kForward, 1),
                                       slice(5, 3, Phase::kBackward, 0),
                                       slice(5, 1, Phase::kRecompute, 0),  // inside
                                       slice(4, 1, Phase::kForward, 0, Stream::kReduce),
                                       slice(4.5, 1, Phase::kForward, 0, Stream::kGather)};
  std::vector<const TraceSlice*> pointers;
  for (const TraceSlice& one : slices) pointers.push_back(&one);
  const PipelineRow row = pipeline_row(pointers);
  ASSERT_EQ(row.boxes.size(), 3u);
  EXPECT_EQ(row.boxes[1].micro_batch, 1);
  EXPECT_EQ(row.boxes[2].phase, Phase::kBackward);
  EXPECT_EQ(row.boxes[2].end, 8);
  ASSERT_EQ(row.traffic.size(), 1u);  // both streams are one lane
  EXPECT_EQ(row.traffic[0].start, 4);
  EXPECT_EQ(row.traffic[0].end, 5.5);
}

TEST(PipelineRow, APassInPiecesIsOneBox) {
  const std::vector<TraceSlice> slices{slice(0, 1, Phase::kForward, 0),
                                       slice(1.01, 1, Phase::kForward, 0),
                                       slice(2.01, 0.5, Phase::kForward, -1),  // of no batch
                                       slice(4, 1, Phase::kForward, 0)};
  std::vector<const TraceSlice*> pointers;
  for (const TraceSlice& one : slices) pointers.push_back(&one);
  EXPECT_EQ(pipeline_row(pointers).boxes.size(), 2u);  // after a second of waiting it is another
}

PipelinePicture picture_of(int passes) {
  PipelinePicture out;
  out.id = "picture";
  out.label = "made";
  out.length = passes;
  PipelineRow row;
  row.name = "stage 0";
  for (int i = 0; i < passes; ++i) {
    row.boxes.push_back({double(i), i + 1.0, Phase::kForward, i, 0, false, "pass"});
  }
  out.rows.push_back(row);
  return out;
}

TEST(PipelinePicture, DrawsEveryPassOrSaysHowManyItLeavesOut) {
  const std::string small = pipeline_picture(picture_of(100)).markup();
  EXPECT_EQ(count_of(small, "class=\"box "), 100u);
  EXPECT_EQ(count_of(small, "left out"), 0u);
  const std::string large = pipeline_picture(picture_of(10000)).markup();
  const std::size_t drawn = count_of(large, "class=\"box ");
  EXPECT_LE(drawn, 3100u);
  const std::size_t at = large.find("Folded at");
  ASSERT_NE(at, large.npos);
  std::string hidden = large.substr(large.find(": ", at) + 2, 6);
  std::erase(hidden, ',');
  EXPECT_EQ(std::stoul(hidden) + drawn, 10000u);
  parsed(large);
}

TEST(PipelinePicture, NumbersStandWhereTheyFit) {
  // In 860 pixels ten passes have 86 each. Four hundred have 2.15 each, room for one digit when
  // zoomed 4 times.
  EXPECT_EQ(count_of(pipeline_picture(picture_of(10)).markup(), "class=\"n n1\""), 10u);
  const std::string crowded = pipeline_picture(picture_of(400)).markup();
  EXPECT_EQ(count_of(crowded, "class=\"n n1\""), 0u);
  EXPECT_EQ(count_of(crowded, "class=\"n n4\""), 10u);
}

TEST(MemoryChart, KeepsThePeakHoweverShortItIs) {
  std::vector<MemorySample> samples;
  for (int i = 0; i < 10000; ++i) {
    samples.push_back({0, Seconds(i * 1e-3), {100, 0, 0, i == 5000 ? 900 : 10, 0, 0}});
  }
  MemoryChart chart{"stage 0", 0, Seconds(10), 1000, {}};
  for (const MemorySample& sample : samples) chart.samples.push_back(&sample);
  const std::string markup = memory_chart(chart, 1).markup();
  EXPECT_NE(markup.find("V0H"), markup.npos) << markup;  // 1000 of 1000: the top
  parsed(markup);
}

TEST(Scatter, JoinsItsFrontBySteps) {
  Scatter scatter;
  scatter.label = "plans";
  const auto number = [](double value) { return std::to_string(static_cast<int>(value)); };
  scatter.x = {"time", ValueAxis::Scale::kLinear, number};
  scatter.y = {"memory", ValueAxis::Scale::kLinear, number};
  scatter.series = {{"legal", {{1, 4, "a"}, {2, 2, "<b>"}, {4, 1, "c"}, {4, 4, "d"}}}};
  scatter.front = {"front", {{1, 4, ""}, {2, 2, ""}, {4, 1, ""}}};
  const std::string markup = scatter_chart(scatter).markup();
  EXPECT_EQ(count_of(markup, "<title>"), 4u);
  EXPECT_EQ(count_of(markup, "&lt;b&gt;"), 1u);
  // The last is the chart's; the one before is the legend's.
  const std::size_t front = markup.rfind("class=\"front\"");
  ASSERT_NE(front, markup.npos);
  const std::string path = markup.substr(front, markup.find("/>", front) - front);
  EXPECT_EQ(count_of(path, "H"), 2u);
  EXPECT_EQ(count_of(path, "V"), 2u);
}

TEST(Scatter, KeepsWhiskersIdealAndLimitInsideItsAxes) {
  Scatter scatter;
  const auto number = [](double value) { return std::to_string(static_cast<int>(value)); };
  scatter.x = {"GPUs", ValueAxis::Scale::kLogarithmic, number, {1, 8}};
  scatter.y = {"speed", ValueAxis::Scale::kLinear, number};
  scatter.series = {{"", {{1, 10, "a", 5, 30}, {8, 60, "b"}}, true}};
  scatter.ideal = {"ideal", {{1, 10, ""}, {8, 80, ""}}};
  scatter.limit = 16;
  scatter.limit_label = "most";
  const auto tree = parsed(scatter_chart(scatter).markup());
  const auto drawing = tree.get_child("figure.div.svg");
  for (const auto& [name, mark] : drawing) {
    for (const char* axis : {"y1", "y2"}) {
      const auto y = mark.get_optional<double>(std::string("<xmlattr>.") + axis);
      EXPECT_TRUE(!y || (*y >= 0 && *y <= 470)) << y.value_or(0);
    }
  }
  const std::string markup = scatter_chart(scatter).markup();
  EXPECT_EQ(count_of(markup, "class=\"whisker "), 1u);
  EXPECT_EQ(count_of(markup, "class=\"joined "), 1u);
  EXPECT_EQ(count_of(markup, ">most<"), 1u);
}

TEST(Views, ShowTheFirstAndNeedNoButtonsForOne) {
  const Html one = views("id", "By", {{"a", paragraph("alone")}});
  EXPECT_EQ(one.markup(), paragraph("alone").markup());
  const auto tree = parsed(views("id", "By", {{"a", text("x")}, {"<b>", text("y")}}).markup());
  const auto group = tree.get_child("div");
  EXPECT_EQ(group.count("div"), 2u);
  const auto buttons = group.get_child("fieldset");
  ASSERT_EQ(buttons.count("label"), 2u);
  EXPECT_EQ(buttons.get<std::string>("legend"), "By");
  std::vector<bool> checked;
  for (const auto& [name, label] : buttons) {
    if (name == "label")
      checked.push_back(label.count("input") > 0 &&
                        label.get_child("input").get_child("<xmlattr>").count("checked") > 0);
  }
  EXPECT_EQ(checked, (std::vector<bool>{true, false}));
}

TEST(PredictionPage, IsWellFormedWithHostileNames) {
  Scenario scenario = made_scenario();
  scenario.model.name = "<script>alert(1)</script>\xFF\"'&";
  Prediction prediction = made_prediction();
  prediction.critical_path.push_back({"</table><img src=x>", Seconds(1)});
  const std::string page = prediction_html(scenario, prediction);
  EXPECT_EQ(count_of(page, "<script>alert"), 0u);
  EXPECT_EQ(count_of(page, "<img"), 0u);
  EXPECT_EQ(page, prediction_html(scenario, prediction));
  const auto tree = parsed(page);
  EXPECT_EQ(tree.get<std::string>("html.<xmlattr>.lang"), "en");
}

}  // namespace
}  // namespace stepcast::html
