// SPDX-License-Identifier: Apache-2.0
#include "report/requirement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/unit_text.h"
#include "economics/outlook_figures.h"
#include "predict/figures.h"
#include "predict/prediction.h"
#include "report/number_text.h"

namespace stepcast {

struct RequiredFigure {
  const char* name;
  bool truth = false;  // stands alone; else it has a limit
  const Figure* figure = nullptr;
  const OutlookFigure* of_run = nullptr;  // neither: whether the plan fits
  Result<double> (*limit)(std::string_view text) = nullptr;
  std::string (*text)(double value) = nullptr;

  std::optional<double> value(const Prediction& prediction, const RunOutlook* run) const {
    if (figure != nullptr) return figure->of(prediction);
    if (of_run == nullptr) return prediction.fits ? 1 : 0;
    return run != nullptr ? of_run->of(*run) : std::nullopt;
  }
};

namespace {

Result<double> read_seconds(std::string_view text) {
  return parse_seconds(text).map([](Seconds time) { return time.value(); });
}
Result<double> read_days(std::string_view text) {
  return parse_count(text).map([](double days) { return days * 86400; });
}
Result<double> read_bytes(std::string_view text) {
  return parse_bytes(text).map([](Bytes bytes) { return bytes.value(); });
}

std::string seconds_text(double value) { return time_text(Seconds(value)); }
std::string bytes_text(double value) { return gib_text(std::llround(value)) + " GiB"; }
std::string days_text(double value) { return duration_text(Seconds(value)); }
std::string rate_number_text(double value) { return number_text(value); }
std::string fraction_text(double value) { return percent_text(value); }

// How a figure's limit is read and its value said, by its unit.
RequiredFigure requirable(const Figure& figure) {
  RequiredFigure out{figure.required, false, &figure, nullptr, parse_count, rate_number_text};
  if (figure.unit == FigureUnit::kSeconds) out.limit = read_seconds, out.text = seconds_text;
  if (figure.unit == FigureUnit::kFraction) out.limit = parse_fraction, out.text = fraction_text;
  if (figure.unit == FigureUnit::kBytes) out.limit = read_bytes, out.text = bytes_text;
  return out;
}
RequiredFigure requirable(const OutlookFigure& figure) {
  RequiredFigure out{figure.required, figure.unit == OutlookUnit::kTruth, nullptr, &figure};
  if (figure.unit == OutlookUnit::kSeconds) out.limit = read_days, out.text = days_text;
  if (figure.unit == OutlookUnit::kFraction) out.limit = parse_fraction, out.text = fraction_text;
  if (figure.unit == OutlookUnit::kDollars) out.limit = parse_dollars, out.text = dollars_text;
  return out;
}

const std::vector<RequiredFigure>& requirable_figures() {
  static const std::vector<RequiredFigure> all = [] {
    std::vector<RequiredFigure> out{{"fits", true}};
    for (const Figure& figure : figures()) {
      if (figure.required != nullptr) out.push_back(requirable(figure));
    }
    for (const OutlookFigure& figure : outlook_figures()) {
      if (figure.required != nullptr) out.push_back(requirable(figure));
    }
    return out;
  }();
  return all;
}

std::vector<std::string> required_names() {
  std::vector<std::string> out;
  for (const RequiredFigure& figure : requirable_figures()) out.emplace_back(figure.name);
  return out;
}

Error bad(std::string message, std::string hint) {
  return {ErrorCode::kBadValue, std::move(message), "", "--require", std::move(hint)};
}

Result<Requirement> parse_one(const std::string& text) {
  const std::size_t sign = text.find_first_of("<>=");
  const std::string name = text.substr(0, sign);
  const auto row = std::ranges::find_if(
      requirable_figures(), [&](const RequiredFigure& figure) { return name == figure.name; });
  if (row == requirable_figures().end()) {
    const std::string near = did_you_mean(name, required_names());
    return failure(bad(fmt::format("'{}' is no figure of a forecast", name),
                       near.empty() ? "one of " + one_of(required_names()) : near));
  }
  Requirement out{text, &*row, true, 1};
  if (sign == std::string::npos) {
    if (row->truth) return out;
    return failure(
        bad(fmt::format("{} has no limit", name), fmt::format("{0}>=X or {0}<=X", name)));
  }
  if (row->truth) {
    return failure(
        bad(fmt::format("'{}' gives {} a limit", text, name), fmt::format("{} alone", name)));
  }
  const std::string relation = text.substr(sign, 2);
  if (relation != ">=" && relation != "<=") {
    return failure(bad(fmt::format("'{}' has neither >= nor <=", text),
                       fmt::format("{0}>=X or {0}<=X", name)));
  }
  out.at_least = relation == ">=";
  const auto limit = row->limit(std::string_view(text).substr(sign + 2));
  if (!limit) return failure(bad(limit.error().front().message, limit.error().front().hint));
  out.limit = *limit;
  return out;
}

}  // namespace

Result<std::vector<Requirement>> parse_requirements(std::string_view text) {
  std::vector<Requirement> out;
  Errors errors;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string one;
    std::ranges::copy_if(text.substr(begin, end - begin), std::back_inserter(one),
                         [](char letter) { return letter != ' '; });
    begin = end + 1;
    auto read =
        one.empty() ? failure(bad("a requirement is empty", "fits, mfu>=0.4")) : parse_one(one);
    if (read) {
      out.push_back(std::move(*read));
    } else {
      errors.insert(errors.end(), read.error().begin(), read.error().end());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

Result<std::vector<std::string>> broken_requirements(const std::vector<Requirement>& requirements,
                                                     const Prediction& prediction,
                                                     const RunOutlook* run) {
  std::vector<std::string> out;
  Errors errors;
  for (const Requirement& requirement : requirements) {
    const RequiredFigure& figure = *requirement.figure;
    const auto value = figure.value(prediction, run);
    if (!value) {
      errors.push_back({ErrorCode::kMissingKey, fmt::format("{} is not known", figure.name), "",
                        "--require", figure.of_run->needs});
    } else if (requirement.at_least ? *value >= requirement.limit : *value <= requirement.limit) {
      continue;
    } else if (figure.truth) {
      out.push_back(fmt::format("required: {}, and it is not so", requirement.text));
    } else {
      out.push_back(
          fmt::format("required: {}, and it is {}", requirement.text, figure.text(*value)));
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

}  // namespace stepcast
