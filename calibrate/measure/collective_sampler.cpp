// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/collective_sampler.h"

#include <fmt/format.h>

#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

// Messages that take longer than the budget of a point get so many. Only a slow link makes them so
// long, and a slow link is steady.
constexpr std::int64_t kFewestSamples = 4;
constexpr double kShareOfBudget = 1.0 / 60;  // of one size of one transfer

}  // namespace

CollectiveSampler::CollectiveSampler(const Job& job, RankReporter& report, Journal& journal,
                                     CollectiveBackend& backend, CollectiveBudget budget)
    : job_(job),
      report_(report),
      journal_(journal),
      backend_(backend),
      budget_(std::move(budget)),
      begin_s_(budget_.now_s ? budget_.now_s() : 0) {}

bool CollectiveSampler::is_over() {
  if (!(budget_.of_all_s > 0)) return false;
  return backend_.on_any_rank(budget_.now_s() - begin_s_ > budget_.of_all_s);
}

// Takes the journal's point if every rank has it there. Takes no samples once the budget is spent.
CollectiveSampler::Point CollectiveSampler::measure_size(const Meeting& meeting, ByteCount bytes) {
  const std::string key = backend_.key_of(bytes);
  const JournalPoint* known = journal_.find(key);
  if (!backend_.on_any_rank(known == nullptr)) return {known->measurement, known->extra};
  if (is_over()) {
    ++left_out_;
    return {{}, SortedJson::object()};
  }
  const Measurement out = take_samples(meeting, bytes);
  const SortedJson facts = backend_.facts_of_size();
  append(journal_, {key, out, facts});
  return {out, facts};
}

Measurement CollectiveSampler::take_samples(const Meeting& meeting, ByteCount bytes) {
  MeasurementProtocol protocol;
  protocol.target_half_width = 2 * job_.target_half_width;
  protocol.budget_s = job_.budget_s * kShareOfBudget;
  protocol.warm_up_samples = 1;
  protocol.min_samples = kFewestSamples;
  protocol.rejection.waiting = false;
  protocol.rejection.forced_switch_s = 0;
  Sampler sampler(protocol);
  backend_.begin_size(bytes);
  // All groups go on until the last one is done: they load the machine as in the run.
  for (bool more = true; more;) {
    if (meeting.takes_part) {
      report_.heartbeat();
      sampler.add(backend_.sample(bytes));
    }
    more = backend_.on_any_rank(meeting.takes_part && !sampler.enough());
  }
  return sampler.result();
}

SortedJson CollectiveSampler::measure_sharing(ByteCount bytes, double alone_s) {
  const std::string key = backend_.key_of(bytes) + " and kernels";
  const JournalPoint* known = journal_.find(key);
  if (!backend_.on_any_rank(known == nullptr)) return known->extra;
  const SortedJson out = backend_.sharing(bytes, alone_s);
  append(journal_, {key, {}, out});
  return out;
}

// Returns notes about the curve beside its points.
SortedJson CollectiveSampler::measure_curve(const CollectiveBackend::Curve& curve,
                                            const Meeting& meeting, Json& points) {
  SortedJson facts = SortedJson::object();
  ByteCount largest = 0;
  double alone_s = 0;
  for (const ByteCount bytes : curve.sizes) {
    report_.progress("communication", done_++, all_,
                     fmt::format("{} of {} bytes", curve.collective, bytes));
    const Point point = measure_size(meeting, bytes);
    facts.update(point.facts);
    if (point.measurement.n > 0) {
      points.push_back({{"bytes", bytes}, {"measurement", measurement_json(point.measurement)}});
    }
    if (!backend_.has_sharing()) continue;
    const bool too_long =
        backend_.on_any_rank(point.measurement.median_s > backend_.longest_sharing_s());
    if (too_long && largest > 0) continue;
    largest = bytes;
    alone_s = point.measurement.median_s;
  }
  if (backend_.has_sharing()) facts.update(measure_sharing(largest, alone_s));
  return facts;
}

void CollectiveSampler::measure(Json& out) {
  const std::vector<CollectiveBackend::Curve> curves = backend_.curves();
  for (const auto& curve : curves) all_ += static_cast<std::int64_t>(curve.sizes.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Meeting meeting = backend_.meet(i);
    Json points = Json::array();
    const SortedJson facts = measure_curve(curves[i], meeting, points);
    if (!meeting.is_first || points.empty()) continue;
    Json told = {{"collective", curves[i].collective},
                 {"placement", meeting.placement},
                 {"concurrent", meeting.concurrent}};
    for (const auto& [key, fact] : facts.items()) told[key] = fact;
    told["points"] = std::move(points);
    out.push_back(std::move(told));
  }
}

}  // namespace stepcast
