// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_parts.h"

#include <algorithm>

namespace stepcast {
namespace {

// Traces state nanoseconds at best.
constexpr double kResolution_s = 1e-9;

struct Span {
  double begin = 0, end = 0;
};

class Splitter {
 public:
  Splitter(const Timeline& timeline, const Window& step, const Labels& labels, bool has_stages)
      : timeline_(timeline), step_(step), labels_(labels), has_stages_(has_stages) {
    for (const Activity& one : timeline.activities) {
      if (one.end_s > step.begin_s && one.begin_s < step.end_s) inside_.push_back(&one);
    }
    out_.length_s = step.length();
    for (const Activity* one : inside_) {
      if (one->kind != ActivityKind::kMessage) continue;
      if (!traffic_.empty() && one->begin_s <= traffic_.back().end) {
        traffic_.back().end = std::max(traffic_.back().end, one->end_s);
      } else {
        traffic_.push_back({one->begin_s, one->end_s});
      }
    }
  }

  StepParts split() {
    std::vector<Span> left{{step_.begin_s, step_.end_s}};
    left = take(ActivityKind::kCompute, left);
    count_late_messages();
    left = take(ActivityKind::kMessage, left);
    left = take(ActivityKind::kCopy, left);
    for (const Span& gap : left) {
      if (gap.end - gap.begin > kResolution_s) classify(gap);
    }
    return std::move(out_);
  }

 private:
  // Gives stretches of what is left to the activities of a kind, the first to begin first, and
  // returns what is left of them.
  std::vector<Span> take(ActivityKind kind, const std::vector<Span>& left) {
    std::vector<Span> rest;
    std::size_t at = 0;
    Span now = left.empty() ? Span{} : left.front();
    const auto next = [&] {
      if (now.end > now.begin) rest.push_back(now);
      ++at;
      if (at < left.size()) now = left[at];
    };
    for (const Activity* one : inside_) {
      if (one->kind != kind) continue;
      const double begin = std::max(one->begin_s, step_.begin_s);
      const double end = std::min(one->end_s, step_.end_s);
      double taken = 0;
      while (at < left.size() && now.end <= begin) next();
      while (at < left.size() && now.begin < end) {
        if (begin > now.begin) {
          rest.push_back({now.begin, begin});
          now.begin = begin;
        }
        const double until = std::min(end, now.end);
        taken += std::max(0.0, until - now.begin);
        now.begin = std::max(now.begin, until);
        if (now.begin < now.end) break;
        next();
      }
      count(*one, taken, end - begin);
    }
    while (at < left.size()) next();
    return rest;
  }

  void count(const Activity& one, double taken, double busy) {
    if (one.kind == ActivityKind::kCopy) {
      out_.copies_s += taken;
    } else if (one.kind == ActivityKind::kCompute) {
      KernelTimes& times = out_.kernels[one.label];
      ++times.calls;
      times.busy_s += taken;
      times.beside_s += std::min(taken, beside_traffic(one.begin_s, one.end_s));
    } else {
      MessageTimes& times = out_.messages[one.label];
      ++times.calls;
      times.bytes += static_cast<double>(one.bytes);
      times.busy_s += busy;
      times.exposed_s += taken;
    }
  }

  double beside_traffic(double begin, double end) const {
    double out = 0;
    auto at = std::ranges::lower_bound(traffic_, begin, {}, &Span::end);
    for (; at != traffic_.end() && at->begin < end; ++at) {
      out += std::max(0.0, std::min(end, at->end) - std::max(begin, at->begin));
    }
    return out;
  }

  // A message is late when the host launched it after all kernels before it had ended.
  void count_late_messages() {
    double computed = step_.begin_s;
    for (const Activity* one : inside_) {
      if (one->kind == ActivityKind::kCompute) computed = std::max(computed, one->end_s);
      if (one->kind != ActivityKind::kMessage || !one->launched_s) continue;
      if (*one->launched_s > computed) ++out_.messages[one->label].late_calls;
    }
  }

  // The first activity that begins at the end of a gap, or behind it.
  const Activity* after(double time) const {
    const auto found = std::ranges::lower_bound(inside_, time - 1e-12, {},
                                                [](const Activity* one) { return one->begin_s; });
    return found == inside_.end() ? nullptr : *found;
  }

  // Whether something of another stage arrived when the gap ended.
  bool ends_with_a_receive(double time) const {
    for (const Activity* one : inside_) {
      if (one->begin_s > time + kLongestStart_s) break;
      if (one->kind != ActivityKind::kMessage || std::abs(one->end_s - time) > kLongestStart_s) {
        continue;
      }
      const auto& message = labels_[one->label].message;
      if (message && message->group.crosses_stages()) return true;
    }
    return false;
  }

  double waited_by_host(const Span& gap) const {
    double out = 0;
    for (const Window& wait : timeline_.host_waits) {
      out += std::max(0.0, std::min(wait.end_s, gap.end) - std::max(wait.begin_s, gap.begin));
    }
    return std::min(out, gap.end - gap.begin);
  }

  void classify(const Span& gap) {
    const double length = gap.end - gap.begin;
    const Activity* next = after(gap.end);
    const bool is_launched = next != nullptr && next->launched_s.has_value();
    if (is_launched && *next->launched_s > gap.begin) {
      // From the end of the launch on it is the GPU's own time.
      const double launched = std::max(*next->launched_s, next->launch_end_s);
      const double late = std::min(launched, gap.end) - gap.begin;
      out_.host_s += late;
      out_.sync_s += waited_by_host({gap.begin, gap.begin + late});
      out_.starts_s += length - late;
    } else if (has_stages_ && (next == nullptr || ends_with_a_receive(gap.end) || !is_launched)) {
      out_.bubble_s += length;
    } else if (length <= kLongestStart_s) {
      out_.starts_s += length;
    } else if (is_launched) {
      out_.streams_s += length;
    } else if (timeline_.has_launches) {
      out_.unknown_s += length;
    } else {
      // Nothing else runs, nothing comes from elsewhere: only the host is left to be waited for.
      out_.host_s += length;
    }
  }

  const Timeline& timeline_;
  const Window& step_;
  const Labels& labels_;
  bool has_stages_;
  std::vector<const Activity*> inside_;  // by begin
  std::vector<Span> traffic_;            // while anything is communicated
  StepParts out_;
};

}  // namespace

double StepParts::compute_s() const {
  double out = 0;
  for (const auto& [label, times] : kernels) out += times.busy_s;
  return out;
}

double StepParts::exposed_s() const {
  double out = 0;
  for (const auto& [label, times] : messages) out += times.exposed_s;
  return out;
}

StepParts parts_of(const Timeline& timeline, const Window& step, const Labels& labels,
                   bool has_stages) {
  return Splitter(timeline, step, labels, has_stages).split();
}

}  // namespace stepcast
