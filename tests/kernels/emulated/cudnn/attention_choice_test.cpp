// SPDX-License-Identifier: Apache-2.0
// Which kernels compute attention, with a stand-in for cuDNN and times that are given.
#include "kernels/cuda/attention_choice.h"

#include "kernels/cuda/attention_on_device.h"
#include "kernels/emulated/cudnn/emulated_cudnn.h"
#include "kernels/emulated/runtime.h"

namespace stepcast::cuda {
namespace {

using emulated::cudnn_executions;

class AttentionChoice : public ::testing::Test {
 protected:
  void SetUp() override { emulated::set_launch_seconds(2e-3); }  // one launch forward, four back
  void TearDown() override {
    emulated::set_launch_seconds(0);
    emulated::set_cudnn_seconds(1e-3);
    emulated::set_cudnn_version(91900);
    emulated::refuse_cudnn_plans("");
    emulated::fail_cudnn_executions(false);
    emulated::fail_cudnn_plans_of_properties(false);
    emulated::set_cudnn_workspace(256);
  }

  static std::string why_not(CudnnAttention& cudnn) {
    return cudnn.why_not({kShape, DataType::kBf16, true, true, 64, 64, 64, 64, 64, 64, 64, 64})
        .value_or("");
  }

  // Forward and backward; how often cuDNN executed.
  template <typename T = Bf16>
  static int executions(AttentionKernels& kernels, const AttentionShape& shape = kShape) {
    const int before = cudnn_executions();
    on_device(Case<T>{shape, 8}, kernels);
    return cudnn_executions() - before;
  }

  static constexpr AttentionShape kShape{1, 2, 1, 8, 16, true};
};

TEST_F(AttentionChoice, KeepsTheFasterOfAShape) {
  for (const double cudnn_s : {1e-3, 9e-3}) {
    emulated::set_cudnn_seconds(cudnn_s);
    AttentionKernels kernels;
    executions(kernels);
    const bool is_faster = cudnn_s < 2e-3;
    EXPECT_EQ(executions(kernels), is_faster ? 2 : 0);  // nothing is timed again
    EXPECT_EQ(kernels.told(),
              is_faster ? "2 by cuDNN 9.19.0 (faster)" : "2 by own kernels (faster)");
    EXPECT_TRUE(kernels.worries().empty());
  }
}

TEST_F(AttentionChoice, IsOfEachDirection) {
  emulated::set_cudnn_seconds(3e-3);
  AttentionKernels kernels;
  executions(kernels);
  EXPECT_EQ(executions(kernels), 1);
  EXPECT_EQ(kernels.told(), "1 by cuDNN 9.19.0 (faster), 1 by own kernels (faster)");
}

TEST_F(AttentionChoice, ResultsAreThoseOfTheChosenEvenInTheCallThatChose) {
  AttentionKernels kernels, fixed({.fixed = AttentionKernel::kCudnn});
  const Case<Bf16> c{kShape, 8};
  const auto chosen = on_device(c, kernels), wanted = on_device(c, fixed);
  EXPECT_EQ(widened(chosen.context), widened(wanted.context));
  EXPECT_EQ(widened(chosen.gradient), widened(wanted.gradient));
}

TEST_F(AttentionChoice, CanBeFixed) {
  emulated::set_cudnn_seconds(1);
  AttentionKernels own(attention_settings("own")), cudnn(attention_settings("cudnn"));
  EXPECT_EQ(executions(own), 0);
  EXPECT_EQ(executions(cudnn), 2);  // no timing either
  EXPECT_EQ(own.told(), "2 by own kernels (as told)");
}

TEST_F(AttentionChoice, WhatCudnnCannotRunIsOurs) {
  AttentionKernels kernels;
  EXPECT_EQ(executions<float>(kernels), 0);
  EXPECT_EQ(kernels.told(), "2 by own kernels (cuDNN's attention is for bf16 and fp16)");

  emulated::refuse_cudnn_plans("a shape that it does not like");
  AttentionKernels refused(attention_settings("cudnn"));
  EXPECT_EQ(executions(refused), 0);
  EXPECT_NE(refused.told().find("CUDNN_STATUS_NOT_SUPPORTED (a shape that it does not like)"),
            std::string::npos);
  EXPECT_TRUE(kernels.worries().empty());  // fp32 is nobody else's
  ASSERT_EQ(refused.worries().size(), 1U);
  EXPECT_TRUE(refused.worries().begin()->starts_with("attention is by the own kernels: cudnn"));
}

TEST_F(AttentionChoice, AnExecutionThatFailsIsToldAndNotTakenForASlowOne) {
  emulated::fail_cudnn_executions(true);
  AttentionKernels fastest;
  EXPECT_EQ(executions(fastest), 0);
  const std::string words =
      "cuDNN 9.19.0 fails: cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED";
  EXPECT_NE(fastest.told().find("2 by own kernels (" + words), std::string::npos) << fastest.told();
  ASSERT_EQ(fastest.worries().size(), 1U);
  EXPECT_NE(fastest.worries().begin()->find(words), std::string::npos);
  AttentionKernels cudnn(attention_settings("cudnn"));
  EXPECT_THROW(executions(cudnn), CudaError);
}

TEST_F(AttentionChoice, APlanThatCannotBeExecutedIsMadeAgainWithAHandle) {
  const Case<Bf16> c{kShape, 8};
  AttentionKernels before(attention_settings("cudnn"));
  const auto wanted = on_device(c, before);
  emulated::fail_cudnn_plans_of_properties(true);
  for (const bool same_bits : {true, false}) {  // by atomics, into an array that is zeroed again
    AttentionKernels kernels({.fixed = AttentionKernel::kCudnn, .same_bits = same_bits});
    EXPECT_EQ(executions(kernels), 2);
    EXPECT_EQ(executions(kernels), 2);  // it is kept
    EXPECT_EQ(kernels.told(),
              "2 by cuDNN 9.19.0 (as told); 2 plans of cuDNN were made again with a handle");
    EXPECT_TRUE(kernels.worries().empty());
    const auto made_again = on_device(c, kernels);
    EXPECT_EQ(widened(made_again.context), widened(wanted.context));
    if (same_bits) {
      EXPECT_EQ(widened(made_again.gradient), widened(wanted.gradient));
    }
  }
  AttentionKernels fastest;  // it wins as any other plan
  executions(fastest);
  EXPECT_TRUE(fastest.told().starts_with("2 by cuDNN 9.19.0 (faster)")) << fastest.told();
}

TEST_F(AttentionChoice, WorkspaceMayTakeWhatIsFree) {
  emulated::set_cudnn_workspace(std::int64_t{3} << 30);
  CudnnAttention large(true, std::nullopt);
  EXPECT_EQ(why_not(large), "");
  // A 64th of the emulated device's 80 GiB is kept.
  emulated::set_cudnn_workspace(std::int64_t{79} << 30);
  CudnnAttention larger(true, std::nullopt);
  EXPECT_EQ(why_not(larger), "cuDNN's attention wants 80896 MiB of workspace, and may have 80640");
  CudnnAttention narrow(true, std::int64_t{2} << 30);
  EXPECT_NE(why_not(narrow), "");
}

TEST_F(AttentionChoice, OldVersionsAreAskedForLess) {
  AttentionKernels faulty(attention_settings("cudnn"));
  emulated::set_cudnn_version(91001);
  EXPECT_EQ(executions(faulty), 0);
  emulated::set_cudnn_version(91500);  // backward, multiples of 128 tokens
  AttentionKernels old(attention_settings("cudnn"));
  EXPECT_EQ(executions(old), 1);
  EXPECT_EQ(executions(old, {1, 1, 1, 128, 16, true}), 2);
}

TEST_F(AttentionChoice, OfNothingNothingIsAsked) {
  AttentionKernels kernels;
  EXPECT_EQ(executions(kernels, {0, 2, 1, 8, 16, true}), 0);
  EXPECT_EQ(kernels.told(), "none");
}

}  // namespace
}  // namespace stepcast::cuda
