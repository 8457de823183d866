// SPDX-License-Identifier: Apache-2.0
// The operations of layers that are no plain attention and MLP.
#include "execute/call_kernel.h"

namespace stepcast {

void call(const LatentRotary& rotary, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t tokens = rotary.size.rows();
  const LatentShape shape{tokens / rotary.sequence,
                          rotary.sequence,
                          rotary.heads,
                          rotary.plain,
                          rotary.rotary,
                          rotary.value,
                          arrays.part().places};
  const auto of_heads = [&](std::int64_t width) {
    return ArraySpec{tokens * shape.heads * width, rotary.type};
  };
  const ArraySpec keys = of_heads(shape.key_width()), values = of_heads(shape.value),
                  ups = of_heads(shape.up_width());
  if (!rotary.backward) {
    // The rotary key stands at the end of its rows.
    RowArray key = arrays.read_rows(2, {tokens, shape.rotary, rotary.type});
    key.array = key.array.from(key.stride - shape.rotary);
    kernels.variants().latent_rotary({.shape = shape,
                                      .query = arrays.write(0, keys),
                                      .up = arrays.read(1, ups),
                                      .rotary_key = {key.array, key.stride},
                                      .key = arrays.write(1, keys),
                                      .value = arrays.write(2, values)});
    return;
  }
  kernels.variants().latent_rotary_backward(
      {.shape = shape,
       .query_gradient = arrays.write(0, keys),
       .key_gradient = arrays.read(1, keys),
       .value_gradient = arrays.read(2, values),
       .up_gradient = arrays.write(1, ups),
       .rotary_gradient = arrays.write(2, {tokens * shape.rotary, rotary.type})});
}

// Between rows of the whole width and the columns of each rank, which lie rank by rank.
void call(const JoinColumns& join, KernelArrays& arrays, Kernels& kernels) {
  const RankPart part = arrays.part();
  const std::int64_t rows = join.size.rows(), width = join.size.width;
  const std::int64_t own = join.backward ? width : width / join.ranks, whole = own * join.ranks;
  const ArraySpec all{join.rows * whole, join.type};
  const Array from = arrays.read(0, all), to = arrays.write(0, {rows * width, join.type});
  if (join.backward) {
    kernels.variants().copy_columns({.from = {from.from(part.tensor_place * own), whole},
                                     .to = {to, own},
                                     .rows = rows,
                                     .columns = own});
    return;
  }
  kernels.variants().spread_rows(
      {.from = {from.from(part.first_position * own), {join.rows * own, 0, own}},
       .to = {to, {own, 0, whole}},
       .counts = {join.ranks, 1, rows},
       .columns = own});
}

// Two tensors into one, or one into two where it writes two.
void call(const JoinRows& join, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t rows = join.size.rows(), width = join.size.width;
  const RowSpec part{rows, width / 2, join.type}, whole{rows, width, join.type};
  VariantKernels& variants = kernels.variants();
  const auto joined = [&](const RowArray& one, std::int64_t begin) {
    return StridedRows{one.array.from(begin), one.stride};
  };
  if (arrays.has_write(1)) {
    const RowArray from = arrays.read_rows(0, whole), first = arrays.write_rows(0, part),
                   second = arrays.write_rows(1, part);
    variants.copy_columns({.from = joined(from, 0),
                           .to = {first.array, first.stride},
                           .rows = rows,
                           .columns = first.stride});
    variants.copy_columns({.from = joined(from, first.stride),
                           .to = {second.array, second.stride},
                           .rows = rows,
                           .columns = second.stride});
    return;
  }
  const RowArray to = arrays.write_rows(0, whole), first = arrays.read_rows(0, part),
                 second = arrays.read_rows(1, part);
  variants.copy_columns({.from = {first.array, first.stride},
                         .to = joined(to, 0),
                         .rows = rows,
                         .columns = first.stride});
  variants.copy_columns({.from = {second.array, second.stride},
                         .to = joined(to, first.stride),
                         .rows = rows,
                         .columns = second.stride});
}

}  // namespace stepcast
