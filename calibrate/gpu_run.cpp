// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu_run.h"

#include <fmt/format.h>

#include "calibrate/measured_on_gpu.h"
#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/text/escape.h"
#include "core/write_rows.h"

namespace stepcast {
namespace {

void tell(const std::optional<GpuRun::Sustained>& run, GpuKernelKind kind, OwnRun& out) {
  if (!run) return;
  out.sustained[kind] = run->factor;
  out.machine[std::string("sustained_") + name_of(kind)] =
      fmt::format("{:.3f} of its time in a sample: {}{}", run->factor, run->operation,
                  words_of(run->condition));
}

void tell(const std::optional<GpuRun::Beside>& beside, const std::string& name, OwnRun& out) {
  if (!beside) return;
  if (beside->bytes_per_s) {
    out.machine[name] = fmt::format("{:.4g} GB/s", *beside->bytes_per_s * 1e-9);
  }
  out.machine["beside_" + name] = fmt::format("a product takes {:.3f} of its time, it {:.3f}",
                                              beside->product_slowdown, beside->slowdown);
}

}  // namespace

std::optional<gpu_run::Sustained>& gpu_run::SustainedKernels::of(GpuKernelKind kind) {
  switch (kind) {
    case GpuKernelKind::kGemm:
      return gemm;
    case GpuKernelKind::kGemmFp8:
      return gemm_fp8;
    case GpuKernelKind::kGroupedGemm:
      return grouped_gemm;
    case GpuKernelKind::kAttention:
      return attention;
    case GpuKernelKind::kAttentionBackward:
      return attention_backward;
    case GpuKernelKind::kMemoryBound:
      break;
  }
  return memory_bound;
}

void GpuRun::check(const JsonValue& value) const {
  if (!machine.is_object()) {
    ObjectReader(value).fail("machine", ErrorCode::kBadValue, "is no object of facts");
  }
}

std::string gpu_run_text(const GpuRun& run) { return json_text(json_of(run)) + "\n"; }

Result<GpuRun> load_gpu_run(const std::string& file) {
  auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  GpuRun out = read_object<GpuRun>((*document)->root());
  if (!(*document)->ok()) return failure((*document)->errors());
  return out;
}

OwnRun own_run_of(const GpuRun& run, const ClusterSpec& cluster) {
  OwnRun out;
  out.host = kNoHost;
  out.host_memory = run.host_memory;
  out.host.launch_s = run.host.launch_s;
  out.host.graph_launch_s = run.host.graph_launch_s;
  out.host.collective_s = run.host.collective_s.value_or(run.host.launch_s);
  gpu_run::SustainedKernels sustained = run.sustained;
  for (int i = 0; i < kGpuKernelKinds; ++i) {
    const auto kind = static_cast<GpuKernelKind>(i);
    tell(sustained.of(kind), kind, out);
  }
  tell(run.beside.all_reduce, "all_reduce", out);
  tell(run.beside.copies.to_device, "copy_to_device", out);
  tell(run.beside.copies.to_host, "copy_to_host", out);
  tell(run.beside.copies.on_device, "copy_on_device", out);
  if (const auto& group = run.beside.all_reduce; group && group->ranks && group->bytes) {
    out.sms_per_channel =
        sms_per_channel(group->product_slowdown, *group->ranks, *group->bytes, cluster);
  }
  for (const auto& [key, fact] : run.machine.items()) {
    out.machine[key] = fact.is_string() ? fact.get_text() : json_text(fact);
  }
  return out;
}

Rows gpu_run::Host::fields() {
  static constexpr Row all[] = {row<&Host::launch_s>("launch_s").within(0, 1),
                                row<&Host::graph_launch_s>("graph_launch_s").within(0, 1),
                                row<&Host::collective_s>("collective_s").within(0, 1)};
  return rows_of<Host>(all);
}

Rows gpu_run::Sustained::fields() {
  static constexpr Row all[] = {row<&Sustained::factor>("factor").within(1, 100),
                                row<&Sustained::operation>("operation").required(),
                                row<&Sustained::condition>("condition")};
  return rows_of<Sustained>(all);
}

Rows gpu_run::SustainedKernels::fields() {
  using F = SustainedKernels;
  static constexpr Row all[] = {row<&F::gemm>("gemm"),
                                row<&F::gemm_fp8>("gemm_fp8"),
                                row<&F::grouped_gemm>("grouped_gemm"),
                                row<&F::attention>("attention"),
                                row<&F::attention_backward>("attention_backward"),
                                row<&F::memory_bound>("memory_bound")};
  return rows_of<F>(all);
}

Rows gpu_run::Beside::fields() {
  using F = Beside;
  static constexpr Row all[] = {row<&F::product_slowdown>("product_slowdown").within(1, 1e3),
                                row<&F::slowdown>("slowdown").within(1, 1e3),
                                row<&F::bytes_per_s>("bytes_per_s").within(0, 1e15),
                                row<&F::ranks>("ranks").within(2, ObjectReader::kMaxCount),
                                row<&F::bytes>("bytes").within(1, ObjectReader::kMaxCount)};
  return rows_of<F>(all);
}

Rows gpu_run::Copies::fields() {
  using F = Copies;
  static constexpr Row all[] = {row<&F::to_device>("copy_to_device"),
                                row<&F::to_host>("copy_to_host"),
                                row<&F::on_device>("copy_on_device")};
  return rows_of<F>(all);
}

Rows gpu_run::Transfers::fields() {
  static constexpr Row all[] = {row<&Transfers::all_reduce>("all_reduce"),
                                beside<&Transfers::copies>()};
  return rows_of<Transfers>(all);
}

Rows GpuRun::fields() {
  using F = GpuRun;
  static constexpr Row all[] = {
      row<&F::device>("device").required(), row<&F::host>("host").required(),
      row<&F::sustained>("sustained"),      row<&F::beside>("beside"),
      row<&F::host_memory>("host_memory"),  row<&F::machine>("machine").required()};
  return rows_of<F>(all);
}

}  // namespace stepcast
