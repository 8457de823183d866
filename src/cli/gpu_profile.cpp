// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu_profile.h"

#include <fmt/format.h>

#include <filesystem>

#include "calibrate/import/bus_bandwidth.h"
#include "calibrate/import/imported_profile.h"
#include "calibrate/profile_writer.h"
#include "cli/kept_results.h"
#include "cost/collective_model.h"
#include "cost/profile.h"
#include "predict/choose_profile.h"

namespace stepcast::cli {
namespace {

std::string held_out_text(const FitError& error) {
  if (error.median <= 0) return ", too few to hold any out";
  return fmt::format(", held out {:.1f} %, 90 % below {:.1f} %", 100 * error.median,
                     100 * error.p90);
}

void tell(const Imported& measured, const ShippedProfile& profile, const OutputOptions& output) {
  for (const CurveNote& curve : profile.notes) {
    if (curve.form.median <= 0 && curve.held_out.median <= 0) continue;
    note(output, fmt::format("{}: fit {:.1f} %{}", curve.operation, 100 * curve.form.median,
                             held_out_text(curve.held_out)));
  }
  for (const CollectiveTable& table : profile.collectives) {
    const CollectiveSample& last = table.samples.back();
    const double algbw = last.size.value() / last.time.value();
    note(output,
         fmt::format("{} of {} GPUs in {} NVLink domains, {} sizes, algbw {:.4g} GB/s, busbw "
                     "{:.4g} GB/s at the largest{}",
                     name_of(table.group.kind), table.group.group.ranks, table.group.group.domains,
                     table.samples.size(), 1e-9 * algbw,
                     1e-9 * algbw * bus_factor(table.group.kind, table.group.group.ranks),
                     held_out_text(table.held_out)));
  }
  for (const std::string& remark : measured.remarks) note(output, remark);
  for (const auto& [why, count] : measured.left_out) {
    note(output, fmt::format("left out {}: {}", count, why));
  }
}

}  // namespace

int write_gpu_profile(const Imported& measured, const ClusterSpec& cluster,
                      const DataFolders& folders, const OutputOptions& output) {
  const std::string name = std::filesystem::path(output.file).stem().string();
  auto base = device_profile(cluster.accelerator, folders);
  const bool is_to_come = !base && base.error().front().code == ErrorCode::kNotFound &&
                          cluster.accelerator.profile == name;
  if (is_to_come) base = data_sheet_profile(cluster.accelerator);  // the one that is being made
  if (!base) return report_errors(base.error());
  const auto profile = make_imported_profile(measured, cluster, std::move(*base), name);
  if (!profile) return report_errors(profile.error());
  const auto written = write_or_keep(output.file, profile_text(*profile));
  if (!written) return report_errors(written.error());
  tell(measured, *profile, output);
  return kOk;
}

}  // namespace stepcast::cli
