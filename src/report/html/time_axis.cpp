// SPDX-License-Identifier: Apache-2.0
#include "report/html/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stepcast::html {
namespace {

constexpr double kCutWidth = 0.03;  // of the picture
constexpr int kTimeTicks = 8;

}  // namespace

TimeAxis::TimeAxis(double length, std::optional<Cut> cut)
    : length_(length > 0 ? length : 1), cut_(cut) {}

double TimeAxis::share(double seconds) const {
  const double at = std::clamp(seconds, 0.0, length_);
  if (!cut_) return at / length_;
  const double shown = length_ - (cut_->end - cut_->begin);
  const double scale = (1 - kCutWidth) / shown;
  if (at <= cut_->begin) return at * scale;
  const double after_cut = cut_->begin * scale + kCutWidth;
  if (at >= cut_->end) return after_cut + (at - cut_->end) * scale;
  return cut_->begin * scale + kCutWidth * (at - cut_->begin) / (cut_->end - cut_->begin);
}

bool TimeAxis::shows(double start, double end) const {
  if (end <= 0 || start >= length_) return false;
  return !cut_ || start < cut_->begin || end > cut_->end;
}

Html TimeAxis::ticks(double height) const {
  const double shown = cut_ ? length_ - (cut_->end - cut_->begin) : length_;
  const double step = round_ticks(0, shown, kTimeTicks).at(1);
  Html out;
  for (int i = 0; i * step <= length_ * (1 + 1e-9); ++i) {
    const double at = i * step;
    if (cut_ && at > cut_->begin && at < cut_->end) continue;
    const std::string x = percent_of_width(share(at));
    const char* css = i == 0 ? "soft" : share(at) > 0.97 ? "soft end" : "soft middle";
    out += element(
        "line", {{"class", "grid"}, {"x1", x}, {"x2", x}, {"y1", "0"}, {"y2", coordinate(height)}});
    out +=
        element("text", {{"class", css}, {"x", x}, {"y", coordinate(height + 14)}}, tick_text(at));
  }
  return out;
}

std::string tick_text(double seconds) {
  const double size = std::abs(seconds);
  if (size == 0 || size >= 1) return fmt::format("{:.4g} s", seconds);
  return size >= 1e-3 ? fmt::format("{:.4g} ms", seconds * 1e3)
                      : fmt::format("{:.4g} us", seconds * 1e6);
}

std::vector<double> round_ticks(double begin, double end, int count) {
  const double rough = std::max(end - begin, 1e-300) / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= rough * (1 - 1e-9)) {
      step = power * factor;
      break;
    }
  }
  std::vector<double> out;
  for (double k = std::ceil(begin / step - 1e-9); k * step <= end + 1e-9 * step; ++k) {
    out.push_back(k * step + 0.0);  // no -0
  }
  if (out.size() < 2) return {begin, end};
  return out;
}

}  // namespace stepcast::html
