// SPDX-License-Identifier: Apache-2.0
// Kernel -> time. GEMM, attention and memory-bound kernels alone on the device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/accelerator.h"
#include "cost/profile.h"
#include "cost/provenance.h"
#include "cost/sample_surface.h"

namespace stepcast {

struct Attention;
struct Gemm;
struct GroupedGemm;
struct MemoryBound;
struct Operation;

struct KernelPrice {
  Seconds time;               // on the device, alone
  std::int64_t launches = 1;  // kernels issued
  Bytes traffic;              // to device memory
  Curve curve = Curve::kGemm;
  Provenance provenance = Provenance::kDataSheet;
  Jitter jitter{};     // known of an operation that was measured itself
  bool exact = false;  // this very operation was measured: its error is that of Curve::kExact
};

// Tells whose kernels run a program.
enum class KernelStyle {
  kOwn,      // this project's executor's: fused, and no copies of sharded units
  kFused,    // of a framework that compiles or fuses its elementwise chains
  kInSteps,  // of one that runs them step by step (operation/steps.h)
};

class KernelCosts {
 public:
  // Attention is priced by the kernel that the profile names for `framework` (it was measured with
  // it), else by the one named `attention_kernel`, else by the profile's plain attention form.
  KernelCosts(Accelerator accelerator, Profile profile, KernelStyle style,
              std::optional<Framework> framework = std::nullopt,
              const std::string& attention_kernel = "");

  // The time that the profile measured for exactly this operation, if it has one; otherwise the
  // price of its kind. Not for collectives.
  KernelPrice price(const Operation& operation) const;
  bool runs(const Operation& operation) const;  // a kernel runs for it
  KernelPrice price(const Gemm& gemm) const;
  KernelPrice price(const GroupedGemm& grouped) const;
  KernelPrice price(const Attention& attention) const;
  KernelPrice price(const MemoryBound& kernel) const;

  // The prices of a GPU of another model of the cluster (GpuKind); these, where it has none.
  const KernelCosts& of_model(std::int32_t model) const {
    return model == 0 || others_.empty() ? *this : *others_[static_cast<std::size_t>(model) - 1];
  }
  void add_model(std::shared_ptr<const KernelCosts> costs) { others_.push_back(std::move(costs)); }

  const Profile& profile() const { return profile_; }
  const Accelerator& accelerator() const { return accelerator_; }

 private:
  KernelPrice price_by_kind(const Operation& operation) const;
  void index_attention_samples(const AttentionVariant& variant);

  std::vector<std::shared_ptr<const KernelCosts>> others_;  // by model, from 1
  Accelerator accelerator_;
  Profile profile_;
  KernelStyle style_;
  struct GemmSurface {
    GemmFit fit;
    std::array<SampleSurface, 3> by_role;
    bool all_roles;  // a role without samples takes those of forward
    Provenance form, samples;
  };
  GemmSurface surface_of(const GemmCurve& curve, DataType type) const;
  const GemmSurface& surface_of(DataType type) const;

  GemmSurface gemm_surface_;  // of 16-bit operands
  GemmSurface gemm_fp8_surface_;
  GemmSurface gemm_fp4_surface_;
  GemmSurface gemm_fp32_surface_;
  std::array<SampleSurface, 2> attention_surface_;  // forward, backward
  AttentionFit attention_;
  Provenance attention_provenance_;
  Provenance attention_samples_provenance_ = Provenance::kMeasured;
  DataType attention_type_ = DataType::kBf16;  // of the samples
};

}  // namespace stepcast
