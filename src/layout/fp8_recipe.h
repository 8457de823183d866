// SPDX-License-Identifier: Apache-2.0
// How the products of a layer run in fp8: where scales come from, which copies of a tensor are
// made, and who writes them. One row for each recipe; docs/fp8.md has the reasons and sources.
#pragma once

#include <cstdint>
#include <span>

#include "core/data_type.h"
#include "core/quantity.h"

namespace stepcast {

struct Scenario;

struct Fp8Recipe {
  const char* name;  // in scenario files
  // The scale of a tensor is that of its largest element now, which takes a pass over it before the
  // cast. Otherwise it is known from earlier steps, or belongs to a piece that the cast reads once.
  bool finds_scale = false;
  // The copy by rows (for the product with a weight) and the one by columns (for the weight
  // gradient) have scales of their own. So both are written, gathered and kept as they are.
  bool scales_by_direction = false;
  double scale_bytes = 0;           // of one copy of an activation, for each element
  double weight_scale_bytes = 0;    // and of a weight
  bool norm_writes = false;         // a norm can write fp8 itself
  bool cast_sums_bias = true;       // the cast of a gradient can sum that of the bias
  bool gathers_wide = false;        // parameters held in fp8 are still gathered in 16 bits
  bool runs_attention = true;       // there are attention kernels that take its scales
  bool needs_block_scales = false;  // products must take a scale for each 32 elements
  bool runs_head = false;           // the head's products can run in it
  bool fuses_experts = false;       // kernels for products of experts activate and cast for it
  DataType type = DataType::kFp8;   // of the copies
  // Operands of weight gradients go through a random Hadamard transform, whose largest element is
  // found with that of the tensor (finds_scale).
  bool transforms = false;

  bool knows_scale_before() const { return !finds_scale && scale_bytes == 0; }
};

std::span<const Fp8Recipe> fp8_recipes();  // those that a file may name

// Says what fp8, or fp4, comes to in one scenario.
struct Fp8 {
  const Fp8Recipe* recipe = nullptr;  // null: products read 16 bits or more
  DataType type = DataType::kFp8;     // of the copies
  // The device multiplies fp8 only with both operands by rows, as Hopper and Ada do: the copy by
  // columns is a transposed one.
  bool transposes = false;
  bool norm_writes = false;  // in this framework
  // Norm and product are one module, whose norm does so for no other reader of its output.
  bool norms_into_products = false;
  // A norm finds the largest element of its output, so that no pass of its own does.
  bool norm_finds_scale = false;

  explicit operator bool() const { return recipe != nullptr; }
  bool has_two_copies() const { return transposes || recipe->scales_by_direction; }
  // Bytes of one copy of so many elements, with its scales.
  ByteCount copy_bytes(std::int64_t elements) const;
  // A weight takes so much in all the copies that training keeps.
  ByteCount weight_bytes(std::int64_t elements) const;
};

// For the products of layers, or for those of attention where they differ.
Fp8 fp8_of(const Scenario& scenario);
Fp8 attention_fp8_of(const Scenario& scenario);

}  // namespace stepcast
