// SPDX-License-Identifier: Apache-2.0
// Attention by cuDNN: on the emulated device by a stand-in that executes the graphs by their words.
#include "kernels/cuda/cudnn/attention.h"

#include "kernels/cuda/attention_on_device.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class CudnnAttentionIn : public OnDeviceIn<T> {
 protected:
  void SetUp() override {
    OnDeviceIn<T>::SetUp();
    if (this->IsSkipped()) return;
    const auto why = why_no_cudnn();
    if (!why) return;
    // On a GPU our own kernels would run in its place, several times slower, and nobody would know.
    if (why->find("built without its headers") == std::string::npos) FAIL() << *why;
    GTEST_SKIP() << *why;
  }

  // A reason that only some of the library's versions have: our own kernels ran in its place.
  static bool is_for_later_versions(const std::string& reason) {
    return reason.find("known faults") != std::string::npos ||
           reason.find("before 9.16") != std::string::npos;
  }

  // Both forms of the backward pass. Gradients of one query head are rounded before they are summed
  // over a group.
  static void expect_same(const AttentionShape& shape) {
    for (const bool same_bits : {true, false}) {
      SCOPED_TRACE(same_bits ? "same bits" : "atomics");
      AttentionKernels kernels({.fixed = AttentionKernel::kCudnn, .same_bits = same_bits});
      expect_same_as_cpu(Case<T>{shape, 8}, kernels, kForward<T>, 1.5 * kBackward<T>);
      if (!is_for_later_versions(kernels.told())) {
        EXPECT_EQ(kernels.told(), "2 by " + cudnn_name() + " (as told)");
      }
    }
  }
};
using HalfTypes = ::testing::Types<Bf16, Fp16>;
TYPED_TEST_SUITE(CudnnAttentionIn, HalfTypes, TypeNames);

TYPED_TEST(CudnnAttentionIn, EqualsTheCpu) {
  this->expect_same({2, 2, 2, 64, 64, true});
  this->expect_same({1, 2, 2, 48, 64, false});
}

TYPED_TEST(CudnnAttentionIn, GroupsShareKeys) {
  this->expect_same({1, 4, 2, 32, 64, true});
  this->expect_same({2, 4, 1, 16, 64, true});
}

TYPED_TEST(CudnnAttentionIn, EqualsTheCpuForHeadsBesideSixtyFour) {
  for (const std::int64_t head_dim : {72, 96, 128})
    this->expect_same({1, 1, 1, 32, head_dim, true});
}

TYPED_TEST(CudnnAttentionIn, HasReasonsAgainstWhatItCannotCompute) {
  CudnnAttention cudnn(true, std::int64_t{1} << 40);
  const auto why = [&](const AttentionShape& shape, bool backward, bool aligned, DataType type) {
    return cudnn.why_not({shape, type, backward, aligned, 64, 64, 64, 64, 64, 64, 64, 64})
        .value_or("");
  };
  constexpr DataType kType = kAttentionType<TypeParam>;
  const AttentionShape shape{1, 1, 1, 32, 64, true};
  if (const std::string reason = why(shape, false, true, kType); reason != "") {
    EXPECT_TRUE(this->is_for_later_versions(reason)) << reason;
    GTEST_SKIP() << reason;
  }
  EXPECT_NE(why(shape, false, true, DataType::kFp32).find("bf16 and fp16"), std::string::npos);
  EXPECT_NE(why(shape, false, false, kType).find("16 bytes"), std::string::npos);
  EXPECT_NE(why({1, 1, 1, 1, 64, true}, true, true, kType).find("single tokens"),
            std::string::npos);
  CudnnAttention narrow(true, -1);
  EXPECT_NE(narrow.why_not({shape, kType, false, true, 64, 64, 64, 64})->find("workspace"),
            std::string::npos);
}

}  // namespace
}  // namespace stepcast::cuda
