// SPDX-License-Identifier: Apache-2.0
#include "operation/signature.h"

#include <fmt/format.h>

#include <array>

namespace stepcast {
namespace {

const char* direction(bool backward) { return backward ? "backward" : "forward"; }

std::string text_of(const Operation&, const Gemm& gemm) {
  return fmt::format("gemm {} {}x{}x{}x{} {} {}{}", name_of(gemm.role), gemm.batch, gemm.m, gemm.n,
                     gemm.k, name_of(gemm.input), name_of(gemm.output),
                     gemm.accumulate ? " accumulate" : "");
}

std::string text_of(const Operation&, const Attention& a) {
  return fmt::format("attention {} {}x{}x{}x{}x{}x{} {} {}", direction(a.backward), a.batch,
                     a.heads, a.kv_heads, a.query_length, a.key_length, a.head_dim,
                     a.causal ? "causal" : "full", name_of(a.type));
}

std::string text_of(const Operation& operation, const Elementwise& kernel) {
  return fmt::format("elementwise {} {} {} {} width {} bytes {}", operation.name,
                     name_of(kernel.kind), direction(kernel.backward), kernel.elements,
                     kernel.width, kernel.bytes);
}

std::string text_of(const Operation&, const Collective& collective) {
  return fmt::format("collective {} {} {}", name_of(collective.kind), collective.bytes,
                     name_of(collective.type));
}

}  // namespace

const char* name_of(GemmRole role) {
  static constexpr std::array<const char*, 3> kNames{"forward", "input_gradient",
                                                     "weight_gradient"};
  return kNames[static_cast<std::size_t>(role)];
}

const char* name_of(ElementwiseKind kind) {
  static constexpr std::array<const char*, kElementwiseKinds> kNames{
      "embedding",     "norm",      "activation", "dropout_add", "softmax", "rotary",   "transpose",
      "cross_entropy", "reduction", "cast",       "accumulate",  "fill",    "optimizer"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string signature(const Operation& operation) {
  return std::visit([&](const auto& work) { return text_of(operation, work); }, operation.work);
}

}  // namespace stepcast
