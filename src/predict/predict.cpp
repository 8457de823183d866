// SPDX-License-Identifier: Apache-2.0
// The way of a forecast: lower, place, fold, price, replay, read the result.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/assert.h"
#include "core/work_limits.h"
#include "layout/scenario.h"
#include "memory/device_footprint.h"
#include "predict/budget.h"
#include "predict/check_replay.h"
#include "predict/critical_path.h"
#include "predict/interval.h"
#include "predict/jobs_beside.h"
#include "predict/link_use.h"
#include "predict/mechanisms.h"
#include "predict/memory_replay.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "predict/record_trace.h"
#include "predict/simulation.h"
#include "predict/step_samples.h"
#include "predict/timeline.h"
#include "program/check_causality.h"

namespace stepcast {
namespace {

// Four steps are enough for 997 of 1,000 random scenarios, and sixteen for 999.
constexpr std::int32_t kMaxSteps = 16;
// A sequence is long from here on, or where a causal mask leaves less than so much of the work: the
// full count then says more than kernels do by tens of per cent.
constexpr std::int64_t kReadsCausal = 32768;
constexpr double kCausalShare = 0.85;

// Periodic: each class trails the others by as much as it did a step ago.
bool periodic(const std::vector<std::vector<ClassTimeline>>& steps) {
  if (steps.size() < 2) return false;
  const auto& now = steps.back();
  const auto& before = steps[steps.size() - 2];
  for (std::size_t c = 0; c < now.size(); ++c) {
    const std::int64_t skew = now[c].step_end.ps - now[0].step_end.ps;
    const std::int64_t old_skew = before[c].step_end.ps - before[0].step_end.ps;
    const double period = static_cast<double>(now[0].step_end.ps - before[0].step_end.ps);
    if (std::abs(static_cast<double>(skew - old_skew)) > 1e-9 * period + 1) return false;
  }
  return true;
}

// All GPUs together can do this, by GPU. Empty where a data sheet has no such peak.
std::optional<FlopsPerSecond> mean_peak(const Cluster& cluster, DataType precision) {
  const auto own = cluster.spec.accelerator.peak(precision);
  if (cluster.spec.other_accelerators.empty() || !own) return own;
  FlopsPerSecond sum;
  for (std::size_t i = 0; i < cluster.topology.gpus().size(); ++i) {
    const auto peak = cluster.accelerator(DeviceId(i)).peak(precision);
    if (!peak) return std::nullopt;
    sum += *peak;
  }
  return sum / static_cast<double>(cluster.topology.gpus().size());
}

// Empty where all GPUs are alike.
std::string gpu_text(const Cluster& cluster, DeviceId device) {
  if (!cluster.topology.is_uneven()) return "";
  const std::string& name = cluster.accelerator(device).name;
  const double speed = cluster.topology.kind(device).speed;
  return speed < 1 ? fmt::format("{} at {:.4g} %", name, 100 * speed) : name;
}

void check_program(const Program& program, const RankGrid& grid) {
  const std::optional<std::string> broken = broken_cause(program, grid);
  STEPCAST_ASSERT(!broken, broken->c_str());
}

class Predictor {
 public:
  Predictor(const Scenario& scenario, const Pricing& pricing, const PredictOptions& options)
      : scenario_(scenario),
        pricing_(pricing),
        profile_(pricing.kernels.profile()),
        options_(options) {
    if (const std::string& left_out = options.without_errors_of; !left_out.empty()) {
      others_ = pricing.errors.without(left_out);
    }
  }

  Result<Prediction> run();

 private:
  Result<Simulation> settle(const SimulationInput& input);
  bool has_others() const {
    return !scenario_.other_jobs.empty() && options_.other_jobs && options_.contention &&
           !options_.alone;
  }
  Result<Simulation> settle_beside(PlacedJob& own);
  void wait_for_critical();
  Seconds moment(const SimulationInput& input, const Simulation& simulation, std::size_t c,
                 const MemoryPeak& peak) const;
  ByteCount lent_bytes(const SimulationInput& input, const Simulation& simulation, std::size_t c,
                       const MemoryPeak& peak) const;
  void read_classes(const SimulationInput& input, const Simulation& simulation);
  void read_times(const SimulationInput& input, const Simulation& simulation);
  void read_provenance(const ClassTimeline& critical);
  void read_bubble();
  void add_outer_steps(const Program& program, const RankGrid& grid);
  void read_rates(const Program& program);
  void read_memory();
  void read_host_memory();
  Result<void> keep_trace(const SimulationInput& input, const Simulation& simulation);
  void read_lost_on_links();
  Result<void> draw_samples(const SimulationInput& input, const Simulation& simulation);
  void read_waterfall(const ClassTimeline& critical);
  const MeasuredErrors& errors() const { return others_ ? *others_ : pricing_.errors; }

  const Scenario& scenario_;
  const Pricing& pricing_;
  const Profile& profile_;
  const PredictOptions& options_;
  std::optional<MeasuredErrors> others_;  // where those of one publisher are left out
  std::vector<ClassTimeline> last_;
  Prediction out_;
};

// Replays two steps, and more until the period repeats.
Result<Simulation> Predictor::settle(const SimulationInput& input) {
  if (const auto affordable = afford_replay(input, 2); !affordable) {
    return failure(affordable.error());
  }
  for (std::int32_t steps = 2;; steps *= 2) {
    auto simulation = simulate(input, steps);
    if (!simulation) return simulation;
    if (input.check) {
      const std::optional<std::string> broken = broken_cause(input, *simulation);
      STEPCAST_ASSERT(!broken, broken->c_str());
    }
    std::vector<std::vector<ClassTimeline>> timelines;
    for (std::int32_t step = steps - 2; step < steps; ++step) {
      timelines.emplace_back();
      for (std::size_t c = 0; c < input.symmetry.ranks.size(); ++c) {
        end_if_stopped();
        timelines.back().push_back(
            read_timeline(input, *simulation, static_cast<std::int32_t>(c), step));
      }
    }
    if (periodic(timelines) || steps == kMaxSteps || !afford_replay(input, 2 * steps)) {
      last_ = std::move(timelines.back());
      wait_for_critical();
      return simulation;
    }
  }
}

// In the long run all ranks take the same for a step. One that still catches up, or runs ahead of
// its neighbours, has the difference in its waits.
void Predictor::wait_for_critical() {
  const ClassTimeline& critical = *std::ranges::max_element(last_, {}, &ClassTimeline::step_end);
  const sim::Duration step = critical.step_end - critical.step_begin;
  for (ClassTimeline& one : last_) {
    const Seconds ahead = sim::seconds(step) - sim::seconds(one.step_end - one.step_begin);
    one.parts.bubble = std::max(Seconds(0), one.parts.bubble + ahead);
  }
}

// The moment of a peak: inside the instruction that it stands in.
Seconds Predictor::moment(const SimulationInput& input, const Simulation& simulation, std::size_t c,
                          const MemoryPeak& peak) const {
  const auto i = static_cast<std::size_t>(peak.instruction);
  const InstructionTasks& tasks = simulation.tasks.back()[c][i];
  if (!tasks.device.valid()) return Seconds(0);
  const auto rank_class = static_cast<std::int32_t>(c);
  const Instruction& what = input.costs.role(rank_class).instructions[i];
  const auto [begin, end] = span_of(input, simulation.replay, tasks, rank_class, what);
  const Seconds since = sim::seconds(begin - last_[c].step_begin);
  // A mean step may be shorter than the one that was replayed last.
  return std::max(Seconds(), since) + sim::seconds(end - begin) * peak.fraction;
}

// Collectives of the forward pass that was issued last still hold this at a peak: their share of it
// that the device had before it when the host ended its issue. A host that binds nothing was ahead
// of all of it.
ByteCount Predictor::lent_bytes(const SimulationInput& input, const Simulation& simulation,
                                std::size_t c, const MemoryPeak& peak) const {
  if (!scenario_.rules.records_streams || peak.lent == 0) return 0;
  const auto i = static_cast<std::size_t>(peak.lender);
  const InstructionTasks& tasks = simulation.tasks.back()[c][i];
  if (!tasks.device.valid() || !tasks.host.valid()) return peak.lent;
  const auto rank_class = static_cast<std::int32_t>(c);
  const TimeSpan device = span_of(input, simulation.replay, tasks, rank_class,
                                  input.costs.role(rank_class).instructions[i]);
  const sim::Time issued = simulation.replay.tasks[tasks.host.index()].end;
  if (device.end <= device.begin) return 0;
  const double before = static_cast<double>((device.end - issued).ps) /
                        static_cast<double>((device.end - device.begin).ps);
  return static_cast<ByteCount>(static_cast<double>(peak.lent) * std::clamp(before, 0.0, 1.0));
}

void Predictor::read_classes(const SimulationInput& input, const Simulation& simulation) {
  std::vector<MemoryPeak> peaks;  // by stage: classes of one stage differ in time, not in memory
  for (const Role& role : input.program.roles) {
    end_if_stopped();
    peaks.push_back(replay_memory(input.program, role));
  }
  const ByteCount framework = framework_bytes(scenario_, options_.alone.has_value());
  for (std::size_t c = 0; c < last_.size(); ++c) {
    const Role& role = input.costs.role(static_cast<std::int32_t>(c));
    const MemoryPeak& peak = peaks[static_cast<std::size_t>(role.stage)];
    RankClass rank_class;
    rank_class.ranks = input.symmetry.ranks[c];
    rank_class.stage = role.stage;
    rank_class.busy = last_[c].busy;
    rank_class.time = last_[c].parts;
    rank_class.memory = peak.parts;
    rank_class.peak_memory = total(peak.parts);
    const ByteCount lent = lent_bytes(input, simulation, c, peak);
    const DeviceId device(input.symmetry.ranks[c].front().value);
    rank_class.device_memory = scenario_.cluster.accelerator(device).memory;
    rank_class.gpu = gpu_text(scenario_.cluster, device);
    rank_class.reserved_bytes =
        reserved_bytes(scenario_, rank_class.peak_memory + lent, peak.others + lent, peak.buffers,
                       rank_class.device_memory);
    rank_class.framework_bytes = framework;
    rank_class.host_bytes = peak.host;
    rank_class.peak_at = moment(input, simulation, c, peak);
    out_.rank_classes.push_back(std::move(rank_class));
  }
}

// Shares of the sources of prices: those of what ran, and of traffic that the rank waited for.
void Predictor::read_provenance(const ClassTimeline& critical) {
  const std::array<Seconds, kProvenances>& sum = critical.work.by_provenance;
  Seconds all(0);
  for (const Seconds part : sum) all += part;
  for (std::size_t p = 0; p < kProvenances; ++p) {
    out_.provenance[p] = all.value() > 0 ? sum[p] / all : 0;
  }
}

void Predictor::read_times(const SimulationInput& input, const Simulation& simulation) {
  std::size_t critical = 0;
  for (std::size_t c = 0; c < last_.size(); ++c) {
    if (last_[c].step_end > last_[critical].step_end) critical = c;
  }
  const ClassTimeline& timeline = last_[critical];
  out_.time = timeline.parts;
  out_.step_time = sim::seconds(timeline.step_end - timeline.step_begin);

  std::array<Seconds, kCurves> by_curve = timeline.work.by_curve;
  by_curve[static_cast<std::size_t>(Curve::kHost)] += timeline.parts.other;
  Interval interval =
      interval90(out_.step_time, by_curve, profile_.sigma, mechanisms_of(scenario_), errors());
  out_.step_time_low = interval.low;
  out_.step_time_high = interval.high;
  out_.unproven = std::move(interval.unproven);

  read_provenance(timeline);
  out_.critical_path = find_critical_path(input, simulation, last_, critical);
  if (!options_.alone) read_waterfall(timeline);
}

// No part is negative, because each kernel's time is divided at the moment at which the dense peak
// would be done with its FLOPs, and the time of all kernels at the mean of the ranks.
void Predictor::read_waterfall(const ClassTimeline& critical) {
  const RunCost& work = critical.work;
  const double gpus = static_cast<double>(scenario_.cluster.gpus());
  Seconds mean_compute;
  for (const RankClass& one : out_.rank_classes) {
    mean_compute += one.time.compute * (static_cast<double>(one.ranks.size()) / gpus);
  }
  // A rank that computes more than the mean has so much of the stages' imbalance, in equal parts of
  // all its kernels. One that computes less waits for others instead, which is bubble.
  const Seconds compute = critical.parts.compute;
  const double even = compute > mean_compute ? mean_compute / compute : 1.0;
  Waterfall& out = out_.waterfall;
  out.ideal = (work.ideal_gemm + work.ideal_attention) * even;
  out.gemm_inefficiency = (work.gemm - work.ideal_gemm) * even;
  out.attention_inefficiency = (work.attention - work.ideal_attention) * even;
  out.memory_bound = work.memory_bound * even;
  out.imbalance = compute * (1 - even);
  out.recompute = critical.parts.recompute;
  out.optimizer = critical.parts.optimizer;
  out.rest = critical.parts;
}

void Predictor::read_bubble() {
  double largest = 0, steady = out_.step_time.value();
  for (const ClassTimeline& timeline : last_) {
    largest = std::max(largest, sim::seconds(timeline.span_end - timeline.span_begin).value());
  }
  double sum = 0, sum_steady = 0, ranks = 0;
  for (std::size_t c = 0; c < last_.size(); ++c) {
    const double used = (last_[c].busy + last_[c].exposed_in_span).value();
    const double count = static_cast<double>(out_.rank_classes[c].ranks.size());
    out_.rank_classes[c].bubble_fraction = largest > 0 ? std::max(0.0, 1 - used / largest) : 0;
    sum += count * (largest > 0 ? used / largest : 1);
    sum_steady += count * (steady > 0 ? used / steady : 1);
    ranks += count;
  }
  out_.bubble_fraction = std::max(0.0, 1 - sum / ranks);
  out_.bubble_fraction_steady = std::max(0.0, 1 - sum_steady / ranks);
}

// The mean step of a period has its part of the outer one, whose meeting is data parallelism.
void Predictor::add_outer_steps(const Program& program, const RankGrid& grid) {
  if (!pricing_.between || options_.alone) return;
  out_.outer = outer_step(scenario_, program, grid, pricing_, out_.step_time);
  const double every = static_cast<double>(scenario_.training.outer.every);
  const Seconds met = out_.outer.exposed / every, updated = out_.outer.update / every;
  for (Seconds* time : {&out_.step_time, &out_.step_time_low, &out_.step_time_high}) {
    *time += met + updated;
  }
  const auto add = [&](TimeParts& parts) {
    parts.exposed_dp += met;
    parts.optimizer += updated;
  };
  add(out_.time);
  for (RankClass& rank_class : out_.rank_classes) add(rank_class.time);
  out_.waterfall.optimizer += updated;
  out_.waterfall.rest.exposed_dp += met;
  out_.critical_path.push_back({"outer step", met + updated});
}

void Predictor::read_rates(const Program& program) {
  const double time = out_.step_time.value();
  const double gpus = static_cast<double>(scenario_.cluster.gpus());
  const double tokens = static_cast<double>(scenario_.training.global_batch) *
                        static_cast<double>(scenario_.training.sequence_length);
  out_.tokens_per_s_per_gpu = tokens / time / gpus;
  out_.tokens_per_s = tokens / time * static_cast<double>(scenario_.islands());
  out_.flops = options_.flops;
  const bool causal = options_.flops == FlopCount::kCausal;
  const double gpu_tera = time * gpus * 1e12;
  out_.model_tflops_per_gpu = model_flops(scenario_, causal).value() / gpu_tera;
  out_.hardware_tflops_per_gpu = hardware_flops(scenario_, program, causal).value() / gpu_tera;
  if (const auto peak = mean_peak(scenario_.cluster, scenario_.training.precision)) {
    out_.mfu = out_.model_tflops_per_gpu * 1e12 / peak->value();
    const double hfu = out_.hardware_tflops_per_gpu * 1e12 / peak->value();
    // Kernels that skip masked keys execute less than the full count says.
    out_.hfu = hfu <= 1 ? hfu : std::numeric_limits<double>::infinity();
    const double whole = time * gpus * peak->value();
    out_.mfu_causal = model_flops(scenario_, true).value() / whole;
    out_.hfu_causal = hardware_flops(scenario_, program, true).value() / whole;
    const bool is_long = scenario_.training.sequence_length >= kReadsCausal ||
                         out_.mfu_causal < kCausalShare * out_.mfu;
    out_.reads_causal = !causal && is_long;
  }
}

// Adds up what the ranks of a node have in its memory, on the node where that is most.
void Predictor::read_host_memory() {
  out_.host_memory = scenario_.cluster.spec.host_memory;
  std::map<std::int64_t, ByteCount> of_node;
  for (const RankClass& rank_class : out_.rank_classes) {
    if (rank_class.host_bytes == 0) continue;
    for (const RankId rank : rank_class.ranks) {
      of_node[scenario_.cluster.node_of(DeviceId(rank.value))] += rank_class.host_bytes;
    }
  }
  for (const auto& [node, bytes] : of_node) out_.peak_host = std::max(out_.peak_host, bytes);
}

// A device holds what is held by the GPUs with as much memory as the one with the least room left.
void Predictor::read_memory() {
  const auto needed = [](const RankClass& one) { return one.reserved_bytes + one.framework_bytes; };
  const auto room = [&](const RankClass& one) { return one.device_memory - needed(one); };
  out_.device_memory = std::ranges::min_element(out_.rank_classes, {}, room)->device_memory;
  ByteCount least = 0;  // what a device must have: the allocator gives back all that it keeps
  for (const RankClass& rank_class : out_.rank_classes) {
    out_.peak_memory = std::max(out_.peak_memory, rank_class.peak_memory);
    out_.peak_reserved = std::max(out_.peak_reserved, rank_class.reserved_bytes);
    if (rank_class.device_memory != out_.device_memory) continue;
    least = std::max(least, rank_class.peak_memory + rank_class.framework_bytes);
    out_.peak_device = std::max(out_.peak_device, needed(rank_class));
  }
  read_host_memory();
  out_.fits = out_.peak_device <= out_.device_memory &&
              (out_.host_memory == 0 || out_.peak_host <= out_.host_memory);
  const bool is_cpu = scenario_.cluster.spec.accelerator.is_cpu();
  const MemoryInterval memory =
      is_cpu ? MemoryInterval{out_.peak_device, out_.peak_device}
             : memory_interval90(out_.peak_device, mechanisms_of(scenario_), errors());
  out_.peak_device_low = std::min(memory.low, least);
  out_.peak_device_high = memory.high;
}

// Against the step whose transfers all have their links to themselves.
void Predictor::read_lost_on_links() {
  PredictOptions apart = options_;
  apart.contention = apart.trace = apart.collectives = false;
  const auto forecast = Predictor(scenario_, pricing_, apart).run();
  end_if_stopped();
  if (!forecast) return;
  out_.lost_on_links = std::max(Seconds(0), out_.step_time - forecast->step_time);
}

// Every rank draws its own times, so that none stands for another.
Result<void> Predictor::draw_samples(const SimulationInput& input, const Simulation& simulation) {
  if (options_.samples.count == 0 || options_.alone) return {};
  if (!options_.fold) {
    auto drawn = sample_steps(input, std::max(2, simulation.steps), options_.samples);
    if (!drawn) return failure(drawn.error());
    out_.samples = std::move(*drawn);
    const OuterStep& outer = out_.outer;
    const Seconds met =
        (outer.exposed + outer.update) / static_cast<double>(scenario_.training.outer.every);
    for (Seconds* time :
         {&out_.samples.mean, &out_.samples.p5, &out_.samples.p50, &out_.samples.p95}) {
      *time += met;
    }
    return {};
  }
  PredictOptions each = options_;
  each.fold = each.trace = each.collectives = false;
  auto forecast = Predictor(scenario_, pricing_, each).run();
  if (!forecast) return failure(forecast.error());
  out_.samples = std::move(forecast->samples);
  return {};
}

// The jobs run together for some steps of this one.
Result<Simulation> Predictor::settle_beside(PlacedJob& own) {
  if (options_.samples.count > 0) {
    return failure({ErrorCode::kNotSupported,
                    "samples of a step beside other jobs are not supported", "", "other_jobs",
                    "leave --samples out"});
  }
  PredictOptions apart = options_;
  apart.other_jobs = apart.trace = apart.collectives = false;
  const auto step_alone = [&](const Scenario& scenario, const Pricing& pricing) {
    auto forecast = Predictor(scenario, pricing, apart).run();
    return forecast ? Result<Seconds>(forecast->step_time)
                    : Result<Seconds>(failure(forecast.error()));
  };
  std::vector<std::unique_ptr<PlacedJob>> others;
  std::vector<PlacedJob*> jobs = {&own};
  std::vector<Seconds> alone;
  for (std::size_t j = 0; j <= scenario_.other_jobs.size(); ++j) {
    const Scenario& scenario = j == 0 ? scenario_ : *scenario_.other_jobs[j - 1].scenario;
    const Pricing& pricing = j == 0 ? pricing_ : *pricing_.other_jobs[j - 1];
    const auto step = step_alone(scenario, pricing);
    if (!step) return failure(step.error());
    alone.push_back(*step);
    if (j == 0) continue;
    auto job = PlacedJob::make(scenario, pricing, apart);
    if (!job) return failure(job.error());
    others.push_back(std::move(*job));
    jobs.push_back(others.back().get());
  }
  fold_together(jobs);
  for (PlacedJob* job : jobs) job->price();
  auto joint = replay_together(jobs, alone);
  if (!joint) return failure(joint.error());
  last_ = std::move(joint->timeline);
  wait_for_critical();
  std::vector<Seconds> steps = {sim::seconds(last_.front().step_end - last_.front().step_begin)};
  steps.insert(steps.end(), joint->steps.begin(), joint->steps.end());
  out_.beside = {alone.front(),
                 std::move(joint->steps),
                 {alone.begin() + 1, alone.end()},
                 links_of_several(jobs, steps)};
  return std::move(joint->simulation);
}

Result<void> Predictor::keep_trace(const SimulationInput& input, const Simulation& simulation) {
  if (!options_.trace) return {};
  if (options_.kernels) {
    if (const auto affordable = afford_kernels(input); !affordable) return affordable;
  }
  sim::Time origin = last_.front().step_begin;
  for (const ClassTimeline& timeline : last_) {
    origin = std::min({origin, timeline.step_begin, timeline.span_begin});
  }
  record_trace(input, simulation, origin, options_.kernels, out_);
  if (options_.alone) return {};
  out_.link_use = link_use(input, pricing_.collectives);
  if (options_.contention) read_lost_on_links();
  return {};
}

Result<Prediction> Predictor::run() {
  auto made = PlacedJob::make(scenario_, pricing_, options_);
  if (!made) return failure(made.error());
  PlacedJob& job = **made;
  end_if_stopped();
  const bool alone = options_.alone.has_value();
  if (options_.check) check_program(job.program(), job.grid());
  if (!has_others()) {
    job.place();
    job.fold();
    end_if_stopped();
    job.price();
    end_if_stopped();
  }
  auto simulation = has_others() ? settle_beside(job) : settle(job.input());
  if (!simulation) return failure(simulation.error());
  const SimulationInput& input = job.input();
  out_.simulated_tasks = simulation->task_count;
  read_classes(input, *simulation);
  read_times(input, *simulation);
  read_bubble();
  add_outer_steps(job.program(), job.grid());
  out_.alone = options_.alone;
  if (!alone)
    read_rates(job.program());  // one rank's step says little of how many tokens all get done
  read_memory();
  if (options_.collectives && !alone) {
    out_.collectives = sent_collectives(input, pricing_.collectives);
  }
  if (const auto drawn = draw_samples(input, *simulation); !drawn) return failure(drawn.error());
  if (const auto kept = keep_trace(input, *simulation); !kept) return failure(kept.error());
  return std::move(out_);
}

}  // namespace

Result<Prediction> predict(const Scenario& scenario, const Pricing& pricing,
                           const PredictOptions& options) {
  const StopScope scope(options.stop);
  try {
    return Predictor(scenario, pricing, options).run();
  } catch (const Stopped&) {
    return failure(Errors{});
  }
}

Result<Prediction> predict(const Scenario& scenario, const DataFolders& folders,
                           const PredictOptions& options) {
  auto pricing = make_pricing(scenario, folders, options.own_kernels);
  if (!pricing) return failure(pricing.error());
  return predict(scenario, **pricing, options);
}

}  // namespace stepcast
