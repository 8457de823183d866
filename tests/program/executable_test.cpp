// SPDX-License-Identifier: Apache-2.0
#include "program/executable.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::small_local;

using Paths = std::vector<std::string>;

Paths refused(const Scenario& scenario, Backend backend) {
  Paths out;
  for (const Error& error : check_executable(scenario, backend)) {
    EXPECT_EQ(error.code, ErrorCode::kNotSupported);
    const char* name = backend == Backend::kCpu ? "the CPU backend" : "the CUDA backend";
    EXPECT_NE(error.message.find(name), std::string::npos) << error.message;
    EXPECT_NE(error.hint, "");
    out.push_back(error.path);
  }
  return out;
}

GptCase on_gpus() {
  GptCase c;
  c.framework = "native";
  c.dropout = 0;
  return c;
}

TEST(Executable, EachBackendHasItsTypes) {
  EXPECT_EQ(refused(gpt(small_local()), Backend::kCpu), Paths{});
  EXPECT_EQ(refused(gpt(small_local()), Backend::kCuda), Paths{});
  GptCase c = on_gpus();
  EXPECT_EQ(refused(gpt(c), Backend::kCuda), Paths{});
  EXPECT_EQ(refused(gpt(c), Backend::kCpu),
            (Paths{"training.precision", "training.grad_precision", "training.reduce_precision"}));
  c.precision = "fp16";
  EXPECT_EQ(refused(gpt(c), Backend::kCuda),
            (Paths{"training.precision", "training.grad_precision"}));
}

TEST(Executable, OnGpusTheWireHasTheTypeOfTheGradientsExceptUnderFsdp) {
  GptCase c = on_gpus();
  c.extra_training = R"(, "grad_precision": "fp32", "reduce_precision": "bf16")";
  EXPECT_EQ(refused(gpt(c), Backend::kCuda), Paths{"training.reduce_precision"});
  c.framework = "fsdp";
  c.zero = 3;
  EXPECT_EQ(refused(gpt(c), Backend::kCuda), Paths{});
}

TEST(Executable, RefusesWhatNoBackendRuns) {
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    GptCase c = small_local();
    c.dropout = 0.1;
    c.tp = 2;
    c.sequence_parallel = true;
    c.extra_layout = R"(, "overlap": {"tp": true})";
    EXPECT_EQ(refused(gpt(c), backend), (Paths{"model.dropout", "layout.overlap.tp"}));
  }
}

TEST(Executable, HeadsOfGpusAreEvenAndAtMost256) {
  const auto heads_of = [](int size) {
    GptCase c = on_gpus();
    c.heads = 4;
    c.hidden = 4 * size;
    return gpt(c);
  };
  EXPECT_EQ(refused(heads_of(256), Backend::kCuda), Paths{});
  EXPECT_EQ(refused(heads_of(96), Backend::kCuda), Paths{});
  EXPECT_EQ(refused(heads_of(258), Backend::kCuda), Paths{"model.head_dim"});
  EXPECT_EQ(refused(heads_of(65), Backend::kCuda), Paths{"model.head_dim"});
}

TEST(NumericsLimits, FollowFromTheRoundingOfTheType) {
  const NumericsLimits exact = numerics_limits(DataType::kFp32);
  EXPECT_EQ(exact.loss, kNumericsLimit);
  EXPECT_EQ(exact.parameters, kNumericsLimit);
  // Two roundings a layer of 40 layers, of random sign and at most 2^-9 each.
  const double activation = std::pow(2.0, -9) / std::sqrt(3.0) * std::sqrt(2.0 * 40);
  EXPECT_NEAR(numerics_limits(DataType::kBf16).loss / activation, 1, 0.02);
  EXPECT_FALSE(numerics_limits(DataType::kBf16).parameters);
}

Scenario with_layers(const std::string& model, const std::string& layout,
                     const std::string& training = "") {
  return testing::scenario_from(
      R"({"stepcast":1,"model":{"layers":2,"hidden":32,"heads":4,"kv_heads":4,"ffn":48,"vocab":64,)"
      R"("max_positions":32,"mlp":"swiglu","norm":"rmsnorm","position":"rope","vocab_multiple":1,)"
      R"("dropout":0,"biases":false)" +
      model +
      R"(},"cluster":{"base":"local","gpus":4},"training":{"global_batch":8,"sequence_length":32,)"
      R"("precision":"fp32","framework":"native")" +
      training + R"(},"layout":{)" + layout + "}}");
}

TEST(Executable, OnlyTheCpuRunsAttentionThatIsNotPlain) {
  const std::string
      dp = R"("dp":4)",
      latent =
          R"(,"mla":{"kv_lora_rank":16,"qk_nope_head_dim":6,"qk_rope_head_dim":4,"v_head_dim":8})";
  const std::string experts = R"(,"moe":{"experts":8,"top_k":2,"ffn":24})";
  const std::string window = R"(,"attention_window":5)";
  const std::string predicting = R"(,"mtp_layers":1)";
  for (const std::string& model : {latent, experts, window, predicting}) {
    EXPECT_EQ(refused(with_layers(model, dp), Backend::kCpu), Paths{}) << model;
  }
  EXPECT_EQ(refused(with_layers(latent, dp), Backend::kCuda), Paths{"model.mla"});
  EXPECT_EQ(refused(with_layers(experts, dp), Backend::kCuda), Paths{});
  EXPECT_EQ(refused(with_layers(window, dp), Backend::kCuda), Paths{"model.attention_window"});
  EXPECT_EQ(refused(with_layers(predicting, dp), Backend::kCuda), Paths{});
  EXPECT_EQ(refused(with_layers(predicting, R"("tp":2,"dp":2)"), Backend::kCpu), Paths{});
  EXPECT_EQ(refused(with_layers(window, dp, R"(,"attention":"unfused")"), Backend::kCpu),
            Paths{"training.attention"});
}

TEST(Executable, RefusesWhatItCannotRunOfExperts) {
  const auto moe = [](const std::string& more) {
    return R"(,"moe":{"experts":8,"top_k":2,"ffn":24)" + more + "}";
  };
  const auto on_cpu = [](const std::string& model, const std::string& layout) {
    return refused(with_layers(model, layout), Backend::kCpu);
  };
  EXPECT_EQ(on_cpu(moe(""), R"("dp":4,"ep":4,"zero":1)"), Paths{});
  EXPECT_EQ(on_cpu(moe(""), R"("dp":4,"ep":4,"zero":0)"), Paths{"layout.zero"});
  EXPECT_EQ(on_cpu(moe(R"(,"dispatcher":"allgather")"), R"("dp":4,"ep":4,"zero":1)"),
            Paths{"model.moe.dispatcher"});
  EXPECT_EQ(on_cpu(moe(""), R"("dp":4,"etp":2,"zero":0)"), Paths{"layout.zero"});
  EXPECT_EQ(
      on_cpu(moe(R"(,"router_bias":true)") + R"(,"mlp_bias":true)", R"("dp":4,"ep":2,"zero":1)"),
      Paths{});
  EXPECT_EQ(on_cpu(moe(R"(,"shared_ffn":16,"shared_gate":true)"), R"("dp":4)"),
            Paths{"model.moe.shared_gate"});
  EXPECT_EQ(on_cpu(moe(R"(,"capacity_factor":0.5)"), R"("dp":4)"),
            Paths{"model.moe.capacity_factor"});
}

// Gradients that are reduced leave at once under zero 2. Where ep is all of dp nobody reduces those
// of the experts, and they would leave in another way.
TEST(Executable, GradientsLeaveForTheHostInOneWay) {
  const auto offloading = [](int ep, int zero) {
    const std::string layout =
        fmt::format(R"("dp":4,"ep":{},"zero":{},"offload":{{"optimizer":1}})", ep, zero);
    const char* experts = R"(,"moe":{"experts":8,"top_k":2,"ffn":24})";
    return refused(with_layers(experts, layout), Backend::kCpu);
  };
  EXPECT_EQ(offloading(4, 2), Paths{"layout.offload.optimizer"});
  EXPECT_EQ(offloading(2, 2), Paths{});
  EXPECT_EQ(offloading(4, 1), Paths{});
  EXPECT_EQ(offloading(4, 3), Paths{});
}

// Sinks join the whole softmax of a query, once.
TEST(Executable, SinksNeedTheWholeSoftmax) {
  const std::string sinks = R"(,"attention_sinks":1)";
  const auto refused_with = [&](const std::string& layout, const std::string& training) {
    return refused(with_layers(sinks, layout, training), Backend::kCpu);
  };
  EXPECT_EQ(refused_with(R"("dp":4)", ""), Paths{});
  EXPECT_EQ(refused_with(R"("dp":4)", R"(,"attention":"unfused")"), Paths{"training.attention"});
  EXPECT_EQ(refused_with(R"("dp":2,"cp":2,"cp_method":"all_to_all")", ""), Paths{});
  for (const char* method : {"ring", "all_gather"}) {
    const std::string layout = fmt::format(R"("dp":2,"cp":2,"cp_method":"{}")", method);
    EXPECT_EQ(refused_with(layout, ""), Paths{"layout.cp_method"}) << method;
  }
}

// 96 rows over 10 experts on two ranks: 9 or 10 for each, where the program has room for 96.
TEST(Executable, RowsOfExpertsMustSpreadAsTheForecastHasThem) {
  const auto with = [](const char* imbalance) {
    return with_layers(
        fmt::format(R"(,"moe":{{"experts":10,"top_k":3,"ffn":24,"imbalance":{}}})", imbalance),
        R"("dp":4,"ep":2,"zero":1)");
  };
  EXPECT_EQ(refused(with("1"), Backend::kCpu), Paths{"training.sequence_length"});
  EXPECT_EQ(refused(with("1.25"), Backend::kCpu), Paths{});
}

}  // namespace
}  // namespace stepcast
