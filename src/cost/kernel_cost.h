// SPDX-License-Identifier: Apache-2.0
// Kernel -> time. GEMM, attention and memory-bound kernels alone on the device.
#pragma once

#include "cluster/accelerator.h"
#include "cost/profile.h"
#include "cost/provenance.h"
#include "program/operation.h"

namespace stepcast {

struct KernelPrice {
  Seconds time;                 // on the device, alone
  std::int64_t launches = 1;    // kernels issued
  Bytes traffic;                // to device memory
  Curve curve = Curve::kGemm;
  Provenance provenance = Provenance::kDataSheet;
};

class KernelCosts {
 public:
  KernelCosts(Accelerator accelerator, Profile profile, bool fused_chains);

  KernelPrice price(const Gemm& gemm) const;
  KernelPrice price(const Attention& attention) const;
  KernelPrice price(const Elementwise& kernel) const;

  const Profile& profile() const { return profile_; }
  const Accelerator& accelerator() const { return accelerator_; }

 private:
  Accelerator accelerator_;
  Profile profile_;
  bool fused_chains_;  // training.compile: one launch per chain instead of Elementwise::launches
};

}  // namespace stepcast
