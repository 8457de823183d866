// SPDX-License-Identifier: Apache-2.0
// Layers in fp8 against the closed forms of docs/fp8.md. T tokens of a rank, h hidden, q width of
// the queries, p of the packed projection, f of the MLP, g of gate and up together.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/each.h"
#include "layout/fp8_recipe.h"
#include "memory/states.h"
#include "program/decoder_layer.h"
#include "program/executable.h"
#include "program/head_block.h"
#include "program/layer_kind.h"
#include "program/program.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;

struct Fp8Case {
  std::string recipe = "delayed", base = "dgx-h100", framework = "megatron";
  std::string more_training = "", more_layout = "";
  int tp = 1, dp = 1, zero = 0;
};

constexpr std::int64_t kTokens = 1024, kHidden = 512, kQuery = 512, kPacked = 512 + 2 * 128,
                       kFfn = 1536, kUp = 2 * kFfn, kLayers = 2, kVocab = 1024;
constexpr std::int64_t kMatrices =
    kPacked * kHidden + kQuery * kHidden + kUp * kHidden + kFfn * kHidden;

Scenario llama(const Fp8Case& c) {
  const auto n = [](int value) { return std::to_string(value); };
  return scenario_from(
      R"({"stepcast": 1, "model": {"layers": 2, "hidden": 512, "heads": 8, "kv_heads": 2,
          "ffn": 1536, "vocab": 1024, "mlp": "swiglu", "norm": "rmsnorm", "position": "rope",
          "tied_embeddings": false, "biases": false, "vocab_multiple": 1},
          "cluster": {"base": ")" +
      c.base + R"(", "gpus": )" + n(c.tp * c.dp) +
      R"(}, "training": {"global_batch": 8, "sequence_length": 1024, "precision": "fp8",
          "fp8_recipe": ")" +
      c.recipe + R"(", "framework": ")" + c.framework + R"(")" + c.more_training +
      R"(}, "layout": {"tp": )" + n(c.tp) + R"(, "dp": )" + n(c.dp) + R"(, "zero": )" + n(c.zero) +
      c.more_layout + "}}");
}

Block fp8_layer(const Fp8Case& c) { return lower_decoder_layer(llama(c), RecomputeMode::kNone); }

// Bytes that casts of this subject read and write in a pass.
double cast_bytes(const Block& block, Pass pass, CastSubject subject) {
  double sum = 0;
  for (const Operation& operation : block.pass(pass).operations) {
    const auto* cast = std::get_if<Cast>(&operation.work);
    if (cast != nullptr && cast->subject == subject) sum += cast->size.bytes;
  }
  return sum;
}

std::map<std::string, ByteCount> collectives(const Block& block, Pass pass) {
  std::map<std::string, ByteCount> out;
  for (const Operation& operation : block.pass(pass).operations) {
    const auto* moved = std::get_if<Collective>(&operation.work);
    if (moved != nullptr) out[operation.name] += moved->bytes;
  }
  return out;
}

ByteCount saved(const Fp8Case& c) { return total(fp8_layer(c).pass(Pass::kForward).memory.after); }

TEST(Fp8, AllThreeProductsOfEveryLinearLayerReadItAndNothingElseDoes) {
  const Scenario scenario = llama({});
  const Program program = lower(scenario);
  AtLeast products(12);  // three of each linear layer
  for (const Block& block : program.blocks) {
    for_each_operation(block, [&](const Operation& operation) {
      const auto* gemm = std::get_if<Gemm>(&operation.work);
      if (gemm == nullptr) return;
      ++products;
      const bool of_layer = block.kind == BlockKind::kLayer;
      EXPECT_EQ(gemm->input, of_layer ? DataType::kFp8 : DataType::kBf16) << operation.name;
      const bool adds = gemm->role == GemmRole::kWeightGradient;
      EXPECT_EQ(gemm->output, adds ? DataType::kFp32 : DataType::kBf16) << operation.name;
    });
  }
}

// Inputs that come from norms are written in fp8 by them; attention's and the MLP's outputs are
// cast: 2 bytes read, one written and on Hopper another for the transposed copy.
TEST(Fp8, OfDelayedScalingCastsWhatNoNormWrites) {
  const double casts = static_cast<double>(kTokens * (kQuery + kFfn));
  EXPECT_EQ(cast_bytes(fp8_layer({}), Pass::kForward, CastSubject::kOperand), (2 + 2) * casts);
  EXPECT_EQ(cast_bytes(fp8_layer({.base = "dgx-b200"}), Pass::kForward, CastSubject::kOperand),
            (2 + 1) * casts);
  // Backward the gradients of all four outputs are cast.
  const double gradients = static_cast<double>(kTokens * (kHidden + kPacked + kHidden + kUp));
  EXPECT_EQ(cast_bytes(fp8_layer({}), Pass::kBackward, CastSubject::kOperand), (2 + 2) * gradients);
  EXPECT_EQ(cast_bytes(fp8_layer({}), Pass::kBackward, CastSubject::kScale), 0);
}

// A norm that writes fp8 reads 2 bytes and writes one for each copy.
TEST(Fp8, ANormWritesTheCopiesInPlaceOfItsOutput) {
  const auto norm_bytes = [](const Fp8Case& c) {
    double sum = 0;
    const Block block = fp8_layer(c);
    for (const Operation& operation : block.pass(Pass::kForward).operations) {
      const auto* norm = std::get_if<Normalization>(&operation.work);
      if (norm != nullptr) sum += norm->size.bytes;
    }
    return sum / static_cast<double>(2 * kTokens * kHidden);
  };
  EXPECT_EQ(norm_bytes({}), 2 + 1 + 1);
  EXPECT_EQ(norm_bytes({.base = "dgx-b200"}), 2 + 1);
  EXPECT_EQ(norm_bytes({.recipe = "mxfp8", .base = "dgx-b200"}), 2 + 2 * (1 + 1.0 / 32));
  EXPECT_EQ(norm_bytes({.recipe = "blockwise"}), 2 + 2);  // cast behind it
}

// How many forward operations read and write a buffer of this name.
struct Uses {
  int reads = 0, writes = 0;
  bool operator==(const Uses&) const = default;
};
Uses uses_of(const Block& block, const std::string& buffer) {
  Uses out;
  const auto count = [&](const std::vector<BufferId>& ids) {
    return static_cast<int>(std::ranges::count(
        ids, buffer, [&](BufferId id) { return std::string(block.buffers[id.index()].name); }));
  };
  for (const Operation& operation : block.pass(Pass::kForward).operations) {
    out.reads += count(operation.reads);
    out.writes += count(operation.writes);
  }
  return out;
}

// A norm is part of the module of the product that alone reads it. Anybody else reads 16 bits, and
// then the norm writes nothing but those (Transformer Engine: with_quantized_norm).
TEST(Fp8, ANormWrites16BitsWhereOthersReadThemToo) {
  EXPECT_EQ(uses_of(fp8_layer({}), "attention_norm"), (Uses{0, 0}));
  // The product casts for itself, and the adapter of query, key and value reads what it casts.
  const Block adapted = fp8_layer({.more_training = R"(, "mode": "lora")"});
  EXPECT_EQ(uses_of(adapted, "attention_norm"), (Uses{1 + 1, 1}));
  const double inputs = static_cast<double>(kTokens * (2 * kHidden + kQuery + kFfn));
  EXPECT_EQ(cast_bytes(adapted, Pass::kForward, CastSubject::kOperand), (2 + 1) * inputs);
}

Block deepseek_layer(const std::string& model, std::int64_t layer) {
  const Scenario scenario = scenario_from(
      R"({"stepcast": 1, "cluster": {"base": "dgx-b200", "gpus": 1}, "model": ")" + model +
      R"(", "training": {"global_batch": 1, "sequence_length": 128, "precision": "fp8"}})");
  return lower_decoder_layer(scenario, RecomputeMode::kNone, BackwardForm::kWhole,
                             kind_of(scenario, layer));
}

// Queries and keys with values start from the same norm; the norms of latents have one reader each.
TEST(Fp8, LatentAttentionReadsTheFirstNormTwiceAndEachLatentOnce) {
  for (const char* model : {"deepseek-v2-lite", "deepseek-v3"}) {
    const Block layer = deepseek_layer(model, 0);
    EXPECT_EQ(uses_of(layer, "attention_norm"), (Uses{2, 1})) << model;
    EXPECT_EQ(uses_of(layer, "key_value_latent_norm"), (Uses{0, 0})) << model;
    EXPECT_EQ(uses_of(layer, "query_latent_norm"), (Uses{0, 0})) << model;
    EXPECT_EQ(uses_of(layer, "mlp_norm"), (Uses{0, 0})) << model;
  }
}

// The shared expert, the router, and who brings tokens to experts.
TEST(Fp8, ALayerOfExpertsReadsItsNormIn16Bits) {
  const Block layer = deepseek_layer("deepseek-v3", 3);
  EXPECT_EQ(uses_of(layer, "mlp_norm"), (Uses{3, 1}));
}

// The largest element of a tensor takes a pass over it, unless a norm has just written it.
TEST(Fp8, OfCurrentScalingReadsATensorForItsScaleFirst) {
  const Block block = fp8_layer({.recipe = "current"});
  const double from_norms = static_cast<double>(2 * kTokens * kHidden);
  const double others = static_cast<double>(kTokens * (kQuery + kFfn));
  EXPECT_EQ(cast_bytes(block, Pass::kForward, CastSubject::kScale), 2 * others);
  EXPECT_EQ(cast_bytes(block, Pass::kForward, CastSubject::kOperand),
            (2 + 2) * (others + from_norms));
  const double gradients = static_cast<double>(kTokens * (kHidden + kPacked + kHidden + kUp));
  EXPECT_EQ(cast_bytes(block, Pass::kBackward, CastSubject::kScale), 2 * gradients);
}

TEST(Fp8, ScalesOfPiecesAddTheirBytes) {
  const double gradients = static_cast<double>(kTokens * (kHidden + kPacked + kHidden + kUp));
  EXPECT_EQ(cast_bytes(fp8_layer({.recipe = "mxfp8", .base = "dgx-b200"}), Pass::kBackward,
                       CastSubject::kOperand),
            (2 + 2 + 2.0 / 32) * gradients);
  EXPECT_EQ(cast_bytes(fp8_layer({.recipe = "blockwise"}), Pass::kBackward, CastSubject::kOperand),
            (2 + 2 + 2.0 * 4 / 128) * gradients);
}

// Under sequence parallelism a norm casts its share, and fp8 is gathered.
TEST(Fp8, IsWhatTensorRanksGather) {
  constexpr ByteCount kWhole = kTokens * kHidden;
  const Fp8Case per_tensor{.recipe = "delayed", .base = "dgx-b200", .tp = 2};
  const auto forward = collectives(fp8_layer(per_tensor), Pass::kForward);
  EXPECT_EQ(forward.at("attention_input"), kWhole);
  EXPECT_EQ(forward.at("mlp_input"), kWhole);
  EXPECT_EQ(forward.at("attention_reduced"), 2 * kWhole);  // sums stay in 16 bits
  EXPECT_EQ(forward.count("scale"), 0U);
  const auto backward = collectives(fp8_layer(per_tensor), Pass::kBackward);
  EXPECT_EQ(backward.at("attention_output_gradient"), kWhole);
  // Both copies of a gradient where each has scales of its own: as many bytes as 16 bits have.
  const Fp8Case by_pieces{.recipe = "mxfp8", .base = "dgx-b200", .tp = 2};
  const auto gathered = collectives(fp8_layer(by_pieces), Pass::kBackward);
  EXPECT_EQ(gathered.at("attention_output_gradient"), 2 * (kWhole + kWhole / 32));
}

// The gather, then the transposed copy that Hopper needs: of two inputs and two gradients.
TEST(Fp8, OnHopperWhatWasGatheredIsTransposed) {
  const Block block = fp8_layer({.tp = 2});
  double transposed = 0;
  for (const Operation& operation : block.pass(Pass::kBackward).operations) {
    const auto* cast = std::get_if<Cast>(&operation.work);
    if (cast != nullptr && cast->from == DataType::kFp8) transposed += cast->size.bytes;
  }
  EXPECT_EQ(transposed, 2.0 * static_cast<double>(4 * kTokens * kHidden));
}

TEST(Fp8, OfCurrentScalingTensorRanksAgreeOnTheScaleOfATensorThatTheyShare) {
  const auto forward = collectives(fp8_layer({.recipe = "current", .tp = 2}), Pass::kForward);
  EXPECT_EQ(forward.at("scale"), 2 * 4);  // of the inputs of two products
  EXPECT_EQ(collectives(fp8_layer({.recipe = "current"}), Pass::kForward).count("scale"), 0U);
}

// Inputs of the products are kept in one byte. Attention's own output stays beside its copy.
TEST(Fp8, KeepsInputsOfProductsInOneByteAndItsScales) {
  Fp8Case c;
  Scenario wide = llama(c);
  wide.training.precision = DataType::kBf16;
  const ByteCount in_16_bits =
      total(lower_decoder_layer(wide, RecomputeMode::kNone).pass(Pass::kForward).memory.after);
  const ByteCount inputs = kTokens * (kHidden + kHidden + kFfn), context = kTokens * kQuery;
  EXPECT_EQ(saved(c), in_16_bits - inputs + context);
  c.recipe = "mxfp8";
  c.base = "dgx-b200";
  EXPECT_EQ(saved(c), in_16_bits - inputs + context + (inputs + context) / 32);
}

// Each of the g elements of a token waits in one byte instead of two; both casts move three bytes.
TEST(Fp8, WhatSwigluReadsWaitsInOneByteWhereAsked) {
  Fp8Case c;
  const ByteCount in_16_bits = saved(c);
  c.more_training = R"(, "fp8_activation_input": true)";
  EXPECT_EQ(saved(c), in_16_bits - kTokens * kUp);
  const Block layer = fp8_layer(c);
  const double bytes = 3.0 * static_cast<double>(kTokens * kUp);
  EXPECT_EQ(cast_bytes(layer, Pass::kForward, CastSubject::kStored), bytes);
  EXPECT_EQ(cast_bytes(layer, Pass::kBackward, CastSubject::kStored), bytes);
}

// Latent attention and experts have norms that are modules of their own. Where they are made again,
// neither the 16 bits that the router and the experts' rows come from are kept, nor the copies of
// the two products of attention and of the shared expert. Scales that are known before need what
// was cast with them.
TEST(Fp8, WhereNormsAreMadeAgainNothingOfThemIsKept) {
  for (const char* recipe : each_of(std::vector<const char*>{"blockwise", "current", "delayed"})) {
    const Scenario scenario = scenario_from(
        R"({"stepcast": 1, "cluster": {"base": "dgx-h100", "gpus": 1}, "model": "deepseek-v3",
            "training": {"global_batch": 1, "sequence_length": 128, "precision": "fp8",
            "fp8_recipe": ")" +
        std::string(recipe) +
        R"("}, "layout": {"recompute": {"mode": "selective", "modules": ["layernorm"]}}})");
    const auto kept = [&](RecomputeMode mode) {
      return total(lower_decoder_layer(scenario, mode, BackwardForm::kWhole, kind_of(scenario, 3))
                       .pass(Pass::kForward)
                       .memory.after);
    };
    const Fp8 fp8 = fp8_of(scenario);
    const std::int64_t normed = 128 * 7168;
    const ByteCount dropped =
        fp8.recipe->knows_scale_before() ? 0 : 2 * normed + 3 * fp8.copy_bytes(normed);
    EXPECT_EQ(kept(RecomputeMode::kNone) - kept(RecomputeMode::kSelective), dropped) << recipe;
  }
}

// Copies of weights are made once a step and stay: one, or two with scales of their own.
TEST(Fp8, CopiesOfWeightsStayBesideThe16BitOnes) {
  const auto copies = [](const Fp8Case& c) {
    const Scenario scenario = llama(c);
    const Program program = lower(scenario);
    const StateBytes states = state_bytes(scenario, program.roles[0].parameters);
    return program.roles[0].persistent[static_cast<std::size_t>(MemoryCategory::kParameters)] -
           states.parameters;
  };
  constexpr ByteCount kAll = kLayers * kMatrices;
  EXPECT_EQ(copies({}), 2 * kAll);
  EXPECT_EQ(copies({.base = "dgx-b200"}), kAll);
  EXPECT_EQ(copies({.recipe = "mxfp8", .base = "dgx-b200"}), 2 * kAll + 2 * kAll / 32);
  EXPECT_EQ(copies({.more_training = R"(, "fp8_params": true)"}), 0);
  EXPECT_EQ(copies({.base = "dgx-b200", .more_training = R"(, "fp8_params": true)"}), -kAll);
}

// The head's copies stay beside its table in 16 bits, however layers hold theirs.
TEST(Fp8, TheHeadReadsItWhereAsked) {
  const auto with_head = [](bool head, bool params) {
    Fp8Case c{.recipe = "mxfp8", .base = "dgx-b200"};
    c.more_training = std::string(R"(, "fp8_params": )") + (params ? "true" : "false") +
                      R"(, "fp8_head": )" + (head ? "true" : "false");
    return llama(c);
  };
  for (const bool head : {false, true}) {
    const Block block = lower_head(with_head(head, true));
    int products = 0;
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      for (const Operation& operation : block.pass(pass).operations) {
        const auto* product = std::get_if<Gemm>(&operation.work);
        if (product == nullptr) continue;
        ++products;
        EXPECT_EQ(product->input, head ? DataType::kFp8 : DataType::kBf16) << operation.name;
      }
    }
    EXPECT_EQ(products, 3);
    // Its norm is no part of the product: 2 bytes are read, and two copies written.
    const double copies = 2 * (1 + 1.0 / 32);
    EXPECT_EQ(cast_bytes(block, Pass::kForward, CastSubject::kOperand),
              head ? kTokens * kHidden * (2 + copies) : 0);
    EXPECT_EQ(cast_bytes(block, Pass::kBackward, CastSubject::kOperand),
              head ? kTokens * kVocab * (2 + copies) : 0);
  }
  for (const bool params : {false, true}) {
    const auto parameters = [&](bool head) {
      return lower(with_head(head, params))
          .roles[0]
          .persistent[static_cast<std::size_t>(MemoryCategory::kParameters)];
    };
    EXPECT_EQ(parameters(true) - parameters(false), 2 * kVocab * kHidden * 33 / 32);
  }
}

TEST(Fp8, ParametersHeldInItAreGatheredInOneByte) {
  const auto gathered = [](Fp8Case c) {
    c.dp = 2;
    c.zero = 1;
    ByteCount bytes = 0;
    const Program program = lower(llama(c));
    for (const Instruction& what : program.roles[0].instructions) {
      const auto* call = what.as<CollectiveCall>();
      if (call != nullptr && call->purpose == Purpose::kParameters) bytes += call->message.bytes;
    }
    return bytes - 2 * program.roles[0].parameters;
  };
  const std::string held = R"(, "fp8_params": true)";
  EXPECT_EQ(gathered({}), 0);
  EXPECT_EQ(gathered({.more_training = held}), -kLayers * kMatrices);
  // MXFP8 gathers 16 bits, which every rank casts both ways.
  EXPECT_EQ(gathered({.recipe = "mxfp8", .base = "dgx-b200", .more_training = held}), 0);
}

// Units that are gathered for each pass cast their weights for each product.
TEST(Fp8, GatheredUnitsCastTheirWeightsForEveryProduct) {
  const Fp8Case c{.recipe = "rowwise", .framework = "fsdp", .dp = 2, .zero = 3};
  EXPECT_EQ(cast_bytes(fp8_layer(c), Pass::kForward, CastSubject::kWeight), 3.0 * kMatrices);
  EXPECT_EQ(cast_bytes(fp8_layer(c), Pass::kBackward, CastSubject::kWeight), 3.0 * kMatrices);
}

TEST(Fp8, AFirstForwardThatIsComputedAgainMakesNoCopiesByColumns) {
  const Block block = lower_decoder_layer(llama({}), RecomputeMode::kFull);
  const double casts = static_cast<double>(kTokens * (kQuery + kFfn));
  EXPECT_EQ(cast_bytes(block, Pass::kForward, CastSubject::kOperand), (2 + 1) * casts);
}

// Adapters read 16 bits; the frozen weights below them are held in fp8, on Hopper in two copies.
TEST(Fp8, AFrozenBaseIsHeldInIt) {
  const Scenario scenario =
      llama({.more_training = R"(, "mode": "lora", "lora_targets": ["qkv", "attention_out"])"});
  const Program program = lower(scenario);
  const ByteCount plain = 2 * (2 * kVocab * kHidden + (2 * kLayers + 1) * kHidden);
  const ByteCount adapters = 2 * scenario.adapter_elements();
  EXPECT_EQ(program.roles[0].persistent[static_cast<std::size_t>(MemoryCategory::kParameters)],
            plain + 2 * kLayers * kMatrices + adapters);
  EXPECT_EQ(program.roles[0].parameters, scenario.adapter_elements());
  const Block block = lower_decoder_layer(scenario, RecomputeMode::kNone);
  AtLeast products(4);
  for (const Operation& operation : block.pass(Pass::kForward).operations) {
    const auto* gemm = std::get_if<Gemm>(&operation.work);
    if (gemm == nullptr) continue;
    ++products;
    const bool narrow = !std::string(operation.name).starts_with("adapter");
    EXPECT_EQ(gemm->input, narrow ? DataType::kFp8 : DataType::kBf16) << operation.name;
  }
}

TEST(Fp8, AttentionReadsItOnlyWhereAsked) {
  const auto type_of = [](const std::string& more) {
    const Block block = fp8_layer({.more_training = more});
    for (const Operation& operation : block.pass(Pass::kForward).operations) {
      const auto* attention = std::get_if<Attention>(&operation.work);
      if (attention != nullptr) return attention->type;
    }
    return DataType::kInt8;
  };
  EXPECT_EQ(type_of(""), DataType::kBf16);
  EXPECT_EQ(type_of(R"(, "fp8_attention": true)"), DataType::kFp8);
}

TEST(Fp8, RunsInTheExecutorWithOneScaleForATensor) {
  const auto refused = [](const Fp8Case& c, Backend backend) {
    const Errors errors = check_executable(llama(c), backend);
    return errors.empty() ? std::string() : errors.front().path;
  };
  const auto with = [&](const char* recipe, const char* key, const char* framework = "megatron") {
    Fp8Case c;
    c.recipe = recipe;
    c.framework = framework;
    if (*key != 0) c.more_training = std::string(R"(, ")") + key + R"(": true)";
    return refused(c, Backend::kCuda);
  };
  EXPECT_EQ(with("delayed", ""), "");
  EXPECT_EQ(with("current", ""), "");
  EXPECT_EQ(with("blockwise", ""), "training.fp8_recipe");
  EXPECT_EQ(with("delayed", "fp8_params"), "training.fp8_params");
  EXPECT_EQ(with("delayed", "fp8_attention"), "training.fp8_attention");
  // Processors have fp32 beside it, and the H100 of this scenario bf16.
  EXPECT_EQ(refused({}, Backend::kCpu), "training.precision");
}

TEST(Fp8, IsEmulatedBesideFp32OnProcessors) {
  const Fp8Case c{.base = "local", .framework = "native"};
  const Scenario scenario = llama(c);
  EXPECT_EQ(scenario.training.wide(), DataType::kFp32);
  EXPECT_TRUE(check_executable(scenario).empty());
  EXPECT_FALSE(fp8_of(scenario).has_two_copies());
  EXPECT_EQ(llama({}).training.wide(), DataType::kBf16);
}

}  // namespace
}  // namespace stepcast
