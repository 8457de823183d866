// SPDX-License-Identifier: Apache-2.0
// Turns what a calibration has measured on a GPU into the input of its profile
// (calibrate/import/imported_profile.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/cpu_measurements.h"
#include "calibrate/import/imported.h"

namespace stepcast {

// Medians of kernels of `device`. Kernels for which GPU profiles have no curve are counted in
// `left_out` by reason: products and attention in fp32, attention of unequal lengths.
Imported curves_of(const std::vector<MeasuredOperation>& operations, const Accelerator& device,
                   const std::string& attention_kernel);

// "of 20 shapes faster: cudnn for 18, stepcast-own for 2; in the median in 0.43 of the other's
// time". Empty where no attention was measured with both.
std::string attention_compared(const std::vector<MeasuredOperation>& operations);

// SMs that a product lost to each channel of an all-reduce of `bytes` among `ranks` of one node,
// beside which it took `slowdown` times its time: NCCL chooses the channels, the rest is measured.
// None where the cluster has no such group.
std::optional<double> sms_per_channel(double slowdown, std::int64_t ranks, ByteCount bytes,
                                      const ClusterSpec& cluster);

// The size curves of groups of GPUs, as tables of nccl-tests are imported. They were measured with
// a process per GPU, whose launches hide behind each other.
void add_collectives(const std::vector<MeasuredCollective>& collectives, Imported& out);

}  // namespace stepcast
