// SPDX-License-Identifier: Apache-2.0
#include "economics/run_terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "layout/scenario.h"
#include "memory/states.h"

namespace stepcast {
namespace {

constexpr double kDay = 86400;

// Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 GPUs (arXiv 2407.21783, table 5),
// 78 % of them of hardware. 0.0038 per day for a node of eight.
constexpr double kFailuresPerGpuDay = 419.0 / (54 * 16384);

// Detection and diagnosis below 10 minutes on average (MegaScale, arXiv 2402.15627).
constexpr Seconds kRestart{600};

// BLOOM-176B: 2.3 TB in 40 s from 48 nodes (ml-engineering, "Checkpoints"); Llama 3's storage
// sustains 2 TB/s for 2,048 nodes.
constexpr BytesPerSecond kCheckpointRatePerNode{2.3e12 / 40 / 48};

// The value for Meta's data centres with which LLaMA's energy was computed (arXiv 2302.13971,
// section 6).
constexpr double kPue = 1.1;

class TermsBuilder {
 public:
  TermsBuilder(const Scenario& scenario, const PriceList& prices)
      : run_(scenario.run.value_or(RunSettings{})),
        scenario_(scenario),
        spec_(scenario.whole_cluster().spec),
        nodes_((spec_.gpus + spec_.gpus_per_node - 1) / spec_.gpus_per_node),
        prices_(prices) {}

  RunTerms build();

 private:
  void assume(const char* key, std::string value, std::string basis) {
    out_.assumptions.push_back({key, std::move(value), std::move(basis)});
  }
  void price();
  void checkpoint();
  void interruptions();
  void energy();

  void rent(const Price* price);
  void corruption();

  const RunSettings run_;
  const Scenario& scenario_;
  const ClusterSpec& spec_;
  std::int64_t nodes_;
  const PriceList& prices_;
  RunTerms out_;
};

// The bill counts as many GPUs as are let together, and whole nodes if the job has several. A price
// that the user states does not change how they are let.
void TermsBuilder::rent(const Price* price) {
  const std::int64_t node = spec_.gpus_per_node;
  std::int64_t together = price && price->rented_together > 0 ? price->rented_together : node;
  together = run_.rented_together.value_or(together);
  const bool part_of_node = nodes_ == 1 && run_.spare_nodes == 0;
  const std::int64_t unit = part_of_node ? together : std::max(together, node);
  const std::int64_t wanted = spec_.gpus + run_.spare_nodes * node;
  out_.rented_gpus = (wanted + unit - 1) / unit * unit;
  out_.rented_together = unit;
  out_.spare_gpus = run_.spare_nodes * node;
}

void TermsBuilder::price() {
  const Price* price = find_price(prices_, spec_);
  rent(price);
  out_.dollars_per_gpu_hour = run_.price_per_gpu_hour;
  if (out_.dollars_per_gpu_hour) return;
  // Nodes that the provider takes back have another price than those that it lets for long.
  const bool is_taken_back = run_.preemption && !run_.rental;
  const Rental rental = is_taken_back && price && price->spot
                            ? Rental::kSpot
                            : run_.rental.value_or(Rental::kOnDemand);
  const auto asked = price ? price->asked(rental) : std::nullopt;
  if (!asked) {
    out_.no_price = why_no_price(spec_, rental);
    return;
  }
  out_.least_rental = price->least;
  out_.dollars_per_gpu_hour = *asked;
  std::string basis = price->source.empty() ? price->provider
                                            : fmt::format("{}, {} ({})", price->provider,
                                                          price->as_of, price->source);
  if (rental != Rental::kOnDemand) basis = fmt::format("{}: {}", name_of(rental), basis);
  if (is_taken_back && !price->spot) {
    basis = "on demand, although nodes are taken back, as no spot price is listed: " + basis;
  }
  assume("run.price_per_gpu_hour", fmt::format("${:.2f}", *asked), std::move(basis));
}

void TermsBuilder::checkpoint() {
  out_.checkpoint = run_.checkpoint.bytes.value_or(bytes(checkpoint_bytes(scenario_)));
  if (!run_.checkpoint.bytes) {
    assume("run.checkpoint.bytes", fmt::format("{:.4g} GB", out_.checkpoint.value() / 1e9),
           "parameters, master weights and moments of what is trained, once");
  }
  const BytesPerSecond rate =
      run_.checkpoint.bandwidth.value_or(static_cast<double>(nodes_) * kCheckpointRatePerNode);
  if (!run_.checkpoint.bandwidth) {
    assume(
        "run.checkpoint.bandwidth", fmt::format("{:.4g} GB/s", rate.value() / 1e9),
        "1.2 GB/s per node: BLOOM-176B wrote 2.3 TB in 40 s from 48 nodes; training stands still "
        "meanwhile");
  }
  out_.hazards.process.checkpoint = out_.checkpoint / rate;
  out_.checkpoint_interval = run_.checkpoint.interval;
}

void TermsBuilder::interruptions() {
  Hazards& hazards = out_.hazards;
  const double nodes = static_cast<double>(nodes_);
  const double per_node = run_.failures_per_node_day.value_or(
      kFailuresPerGpuDay * static_cast<double>(spec_.gpus_per_node));
  if (!run_.failures_per_node_day) {
    assume("run.failures_per_node_day", fmt::format("{:.2g}", per_node),
           "Llama 3 405B: 419 in 54 days on 16,384 GPUs");
  }
  hazards.process.restart = run_.restart.value_or(kRestart);
  if (!run_.restart) {
    assume("run.restart", "10 min", "MegaScale: detection and diagnosis below 10 minutes");
  }
  const PerSecond failures(nodes * per_node / kDay);
  hazards.process.failures = failures + PerSecond(run_.failures_per_day / kDay);
  hazards.node_losses = failures;
  if (run_.preemption) {
    const PerSecond preemptions(nodes * run_.preemption->per_node_day / kDay);
    // A warning that is too short for a checkpoint saves nothing.
    const bool saved = run_.preemption->notice >= hazards.process.checkpoint;
    (saved ? hazards.process.preemptions : hazards.process.failures) += preemptions;
    hazards.node_losses += preemptions;
  }
  if (run_.rental == Rental::kSpot && !run_.preemption) {
    assume("run.preemption", "none", "the best case of spot GPUs, which are taken back at will");
  }
  if (!run_.repair && run_.spare_nodes == 0) {
    assume("run.repair", "0 s", "the best case: a replacement of a lost node is there at once");
  }
  hazards.away = run_.repair.value_or(Seconds(0));
  hazards.spare_nodes = run_.spare_nodes;
  if (run_.elastic) {
    // A lost node takes its replicas along; a replica over several nodes goes with one of them.
    const double of_replica = 1 / static_cast<double>(scenario_.layout.dp * scenario_.islands());
    hazards.lost_per_node = std::max(of_replica, 1 / nodes);
  }
  if (run_.stragglers) {
    hazards.stragglers = PerSecond(nodes * run_.stragglers->per_node_day / kDay);
    hazards.detection = run_.stragglers->detection;
    hazards.slowdown = run_.stragglers->slowdown;
  }
}

void TermsBuilder::corruption() {
  if (!run_.silent_corruption) return;
  Hazards& hazards = out_.hazards;
  hazards.corruptions =
      PerSecond(static_cast<double>(nodes_) * run_.silent_corruption->per_node_day / kDay);
  hazards.corruption_check = run_.silent_corruption->check;
  hazards.check_time = run_.silent_corruption->check_time;
}

void TermsBuilder::energy() {
  const double pue = run_.pue.value_or(kPue);
  double watts = static_cast<double>(out_.gpus) * spec_.accelerator.power_w;
  if (!spec_.other_accelerators.empty()) {
    const Cluster& cluster = scenario_.whole_cluster();
    watts = 0;
    for (std::size_t i = 0; i < cluster.topology.gpus().size(); ++i) {
      watts += cluster.accelerator(DeviceId(i)).power_w;
    }
  }
  out_.power = Watts(watts * pue);
  if (!run_.pue && out_.power.value() > 0) {
    assume("run.pue", fmt::format("{}", kPue),
           "as LLaMA's energy was reckoned, with every GPU at its power limit");
  }
}

RunTerms TermsBuilder::build() {
  out_.tokens = run_.tokens;
  out_.tokens_per_step = static_cast<double>(scenario_.training.global_batch) *
                         static_cast<double>(scenario_.training.sequence_length) *
                         static_cast<double>(scenario_.islands());
  out_.gpus = spec_.gpus;
  out_.deadline = run_.deadline;
  out_.budget = run_.budget;
  out_.beside = run_.beside.value_or(BesideSettings{});
  price();
  checkpoint();
  interruptions();
  corruption();
  energy();
  return std::move(out_);
}

}  // namespace

RunTerms run_terms(const Scenario& scenario, const PriceList& prices) {
  return TermsBuilder(scenario, prices).build();
}

}  // namespace stepcast
