// SPDX-License-Identifier: Apache-2.0
// Layers whose products read fp4 (NVFP4), against the closed forms of docs/fp8.md: half a byte an
// element and a scale of a byte for each 16, in two copies.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/each.h"
#include "layout/fp8_recipe.h"
#include "memory/states.h"
#include "program/decoder_layer.h"
#include "program/layer_kind.h"
#include "program/program.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;

constexpr std::int64_t kFp4Tokens = 1024, kFp4Hidden = 512, kFp4Packed = 512 + 2 * 128,
                       kFp4Ffn = 1536;
constexpr std::int64_t kFp4Attention = kFp4Packed * kFp4Hidden + kFp4Hidden * kFp4Hidden;
constexpr std::int64_t kFp4Mlp = 3 * kFp4Ffn * kFp4Hidden;

Scenario fp4_llama(const std::string& training, const std::string& framework = "megatron") {
  return scenario_from(
      R"({"stepcast": 1, "model": {"layers": 6, "hidden": 512, "heads": 8, "kv_heads": 2,
          "ffn": 1536, "vocab": 1024, "mlp": "swiglu", "norm": "rmsnorm", "position": "rope",
          "tied_embeddings": false, "biases": false, "vocab_multiple": 1},
          "cluster": {"base": "dgx-b200", "gpus": 1},
          "training": {"global_batch": 1, "sequence_length": 1024, "framework": ")" +
      framework + R"(", "precision": "fp4")" + training + R"(}, "layout": {"zero": )" +
      (framework == "fsdp" ? "3" : "0") + "}}");
}

Block fp4_layer_of(const Scenario& scenario, std::int64_t layer) {
  return lower_decoder_layer(scenario, RecomputeMode::kNone, BackwardForm::kWhole,
                             kind_of(scenario, layer));
}

std::map<DataType, int> fp4_products_by_operand(const Block& block) {
  std::map<DataType, int> out;
  for_each_operation(block, [&](const Operation& operation) {
    if (const auto* gemm = std::get_if<Gemm>(&operation.work)) ++out[gemm->input];
  });
  return out;
}

TEST(Fp4, IsReadByAllProductsOfALayer) {
  const auto products = fp4_products_by_operand(fp4_layer_of(fp4_llama(""), 0));
  EXPECT_EQ(products, (std::map<DataType, int>{{DataType::kFp4, 12}}));  // three of each of four
}

TEST(Fp4, OfTheMlpAloneLeavesAttentionInFp8) {
  const auto products =
      fp4_products_by_operand(fp4_layer_of(fp4_llama(R"(,"fp4_products": "mlp")"), 0));
  EXPECT_EQ(products, (std::map<DataType, int>{{DataType::kFp8, 6}, {DataType::kFp4, 6}}));
}

TEST(Fp4, LeavesFirstAndLastLayersIn16Bits) {
  const Scenario scenario = fp4_llama(R"(,"first_layers_16_bits": 1, "last_layers_16_bits": 2)");
  AtLeast layers(6);
  for (std::int64_t layer = 0; layer < 6; ++layer) {
    const DataType read = layer < 1 || layer >= 4 ? DataType::kBf16 : DataType::kFp4;
    const auto products = fp4_products_by_operand(fp4_layer_of(scenario, layer));
    EXPECT_EQ(products, (std::map<DataType, int>{{read, 12}})) << layer;
    ++layers;
  }
  const Program program = lower(scenario);
  EXPECT_EQ(program.roles.front().in_fp4, 3 * (kFp4Attention + kFp4Mlp));
}

// Two bytes are read, for the largest element and again for the copies, of which each has 0.5 +
// 1/16 bytes: by rows and by columns.
TEST(Fp4, CastsReadTwiceAndWriteTwoCopies) {
  const Block block = fp4_layer_of(fp4_llama(""), 0);
  double scales = 0, casts = 0;
  for (const Operation& operation : block.pass(Pass::kForward).operations) {
    const auto* cast = std::get_if<Cast>(&operation.work);
    if (cast == nullptr) continue;
    const bool scale = cast->subject == CastSubject::kTransformedScale;
    EXPECT_TRUE(scale || cast->subject == CastSubject::kOperand);
    (scale ? scales : casts) += cast->size.bytes;
  }
  // Inputs of the packed projection, the output projection, up and down.
  const double elements = static_cast<double>(kFp4Tokens * (3 * kFp4Hidden + kFp4Ffn));
  EXPECT_DOUBLE_EQ(scales, 2 * elements);
  EXPECT_DOUBLE_EQ(casts, (2 + 2 * 0.5625) * elements);
}

TEST(Fp4, ParametersTakeTwoCopiesAndAreGatheredAsOneOfRows) {
  const Scenario beside = fp4_llama(""), held = fp4_llama(R"(,"fp8_params": true)");
  const std::int64_t elements = 16 * kFp4Hidden;
  EXPECT_EQ(fp8_weight_bytes(beside, elements, elements), elements * 9 / 8);
  EXPECT_EQ(fp8_weight_bytes(held, elements, elements), elements * 9 / 8 - 2 * elements);
  // mxfp8 beside it: two copies of a byte and a scale for each 32.
  const Scenario mixed = fp4_llama(R"(,"fp4_products": "mlp")");
  EXPECT_EQ(fp8_weight_bytes(mixed, 2 * elements, elements),
            elements * 9 / 8 + 2 * (elements + elements / 32));
}

TEST(Fp4, OfTorchaoRunsInSharedUnitsToo) {
  const auto products = fp4_products_by_operand(fp4_layer_of(fp4_llama("", "fsdp"), 0));
  EXPECT_EQ(products, (std::map<DataType, int>{{DataType::kFp4, 12}}));
}

}  // namespace
}  // namespace stepcast
