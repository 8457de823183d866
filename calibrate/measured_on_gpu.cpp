// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measured_on_gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/statistics.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

class Curves {
 public:
  Curves(const Accelerator& device, const std::string& attention_kernel)
      : device_(device), attention_kernel_(attention_kernel) {}

  void add(const MeasuredOperation& measured) {
    const double seconds = measured.measurement.median_s;
    const double clock_mhz = measured.condition.sm_clock_mhz;
    const Operation::Work& work = measured.operation.work;
    if (const auto gemm = product_of(work)) add(*gemm, seconds, clock_mhz);
    if (const auto* attention = std::get_if<Attention>(&work)) {
      add(*attention, attention_kernel_, seconds, clock_mhz);
      if (measured.other) {
        const OtherKernel& other = *measured.other;
        add(*attention, measured.kernel, seconds, clock_mhz);
        add(*attention, other.kernel, other.measurement.median_s, other.condition.sm_clock_mhz);
      }
    }
    if (const auto* grouped = std::get_if<GroupedGemm>(&work)) add(*grouped, seconds);
    if (const auto kernel = memory_bound(work)) add(*kernel, seconds);
  }
  Imported take() { return std::move(out_); }

 private:
  double fraction_of_peak(double flops, DataType type, double seconds) const {
    return flops / (matrix_peak(device_, type).value() * seconds);
  }

  void add(const Gemm& gemm, double seconds, double clock_mhz) {
    if (size_of(gemm.input) > 2) {
      ++out_.left_out["products of 32-bit operands: profiles of GPUs have no curve for them"];
      return;
    }
    auto& samples = gemm.input == DataType::kFp8 ? out_.gemms_fp8 : out_.gemms;
    samples.push_back({gemm.role, gemm.batch, gemm.m, gemm.n, gemm.k,
                       fraction_of_peak(flops_of(gemm), gemm.input, seconds), size_of(gemm.output),
                       gemm.accumulate, clock_mhz});
  }

  void add(const GroupedGemm& grouped, double seconds) {
    if (size_of(grouped.input) > 2) {
      ++out_.left_out["products of 32-bit operands: profiles of GPUs have no curve for them"];
      return;
    }
    out_.grouped.push_back({grouped, seconds});
  }

  void add(const Attention& a, const std::string& curve, double seconds, double clock_mhz) {
    if (size_of(a.type) > 2) {
      ++out_.left_out["attention of 32-bit operands: profiles of GPUs have no curve for it"];
      return;
    }
    if (a.query_length != a.key_length) {
      ++out_.left_out["attention whose queries and keys differ in number"];
      return;
    }
    const double fraction = fraction_of_peak(flops_of(a), a.type, seconds);
    out_.attention[curve].push_back(
        {a.backward ? AttentionPass::kBackward : AttentionPass::kForward,
         {a.backward, a.batch, a.heads, a.kv_heads, a.query_length, a.head_dim, a.causal, fraction,
          clock_mhz},
         seconds});
  }

  void add(const MemoryBound& kernel, double seconds) {
    if (kernel.bytes > 0) out_.elementwise.push_back({kernel, seconds});
  }

  const Accelerator& device_;
  const std::string& attention_kernel_;
  Imported out_;
};

}  // namespace

Imported curves_of(const std::vector<MeasuredOperation>& operations, const Accelerator& device,
                   const std::string& attention_kernel) {
  Curves curves(device, attention_kernel);
  for (const MeasuredOperation& measured : operations) curves.add(measured);
  return curves.take();
}

std::string attention_compared(const std::vector<MeasuredOperation>& operations) {
  std::map<std::string, int> faster;
  std::vector<double> ratios;
  for (const MeasuredOperation& measured : operations) {
    if (!measured.other) continue;
    const double own = measured.measurement.median_s, other = measured.other->measurement.median_s;
    ++faster[own <= other ? measured.kernel : measured.other->kernel];
    ratios.push_back(std::min(own, other) / std::max(own, other));
  }
  if (ratios.empty()) return "";
  std::vector<std::string> counts;
  for (const auto& [kernel, count] : faster)
    counts.push_back(fmt::format("{} for {}", kernel, count));
  return fmt::format("of {} shapes faster: {}; in the median in {:.2f} of the other's time",
                     ratios.size(), fmt::join(counts, ", "), median(ratios));
}

std::optional<double> sms_per_channel(double slowdown, std::int64_t ranks, ByteCount bytes,
                                      const ClusterSpec& cluster) {
  if (ranks < 2 || ranks > cluster.gpus_per_node || cluster.accelerator.sm_count == 0) {
    return std::nullopt;
  }
  GroupShape group;
  group.ranks = group.largest = group.smallest = ranks;
  group.nics = cluster.nics_per_node;
  const std::int64_t channels =
      CollectiveModel(cluster, group)
          .estimate(CollectiveKind::kAllReduce, Bytes(static_cast<double>(bytes)), DataType::kBf16)
          .channels;
  // Kernels ran at 1/slowdown of their rate: as if so many SMs fewer were there.
  const double lost = (1 - 1 / slowdown) * static_cast<double>(cluster.accelerator.sm_count);
  return lost / static_cast<double>(std::max<std::int64_t>(1, channels));
}

void add_collectives(const std::vector<MeasuredCollective>& collectives, Imported& out) {
  for (const MeasuredCollective& measured : collectives) {
    ImportedCollective table;
    table.kind = measured.kind;
    table.ranks = static_cast<std::int64_t>(measured.placement.size());
    const std::set<int> nodes(measured.placement.begin(), measured.placement.end());
    table.nodes = static_cast<std::int64_t>(nodes.size());
    for (const MeasuredCollective::Point& point : measured.points) {
      table.samples.push_back(
          {Bytes(static_cast<double>(point.bytes)), Seconds(point.measurement.median_s)});
    }
    // A curve has two sizes.
    if (table.samples.size() > 1) out.collectives.push_back(std::move(table));
  }
}

}  // namespace stepcast
