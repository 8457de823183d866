// SPDX-License-Identifier: Apache-2.0
#include "execute/call_kernel.h"

#include <algorithm>
#include <type_traits>

namespace stepcast {
namespace {

LogitSlice logit_slice(const RankPart& part, std::int64_t columns) {
  const std::int64_t left = part.vocab.value_or(columns);
  return {part.first_token_row, columns, std::clamp<std::int64_t>(left, 0, columns)};
}

// The gradient of a table goes into a dense one of its own, or into the unit's.
Array table_gradient(KernelArrays& arrays, const ArraySpec& spec) {
  return arrays.has_write(0) ? arrays.write(0, spec) : arrays.gradient(0, spec).data;
}

template <class Work>
concept HasKernel = requires(const Work& work, KernelArrays& arrays, Kernels& kernels) {
  call(work, arrays, kernels);
};

}  // namespace

NormKind norm_kind(Norm norm) {
  return norm == Norm::kLayerNorm ? NormKind::kLayer : NormKind::kRms;
}

// Forward y = x W^T (+ bias), input gradient dx[m, n] = dy[m, k] W[k, n], weight gradient
// dW[m, n] = dy[k, m]^T x[k, n] with k the tokens, into a tensor of its own or the gradient itself.
void call(const Gemm& g, KernelArrays& arrays, Kernels& kernels) {
  const ProductOperand a = arrays.operand(0, {g.m * g.k, g.input});
  const ArraySpec b{g.k * g.n, g.input}, c{g.m * g.n, g.output};
  const bool by_columns = is_scaled(g.input) && arrays.has_copies_by_columns();
  if (g.role == GemmRole::kWeightGradient) {
    const ProductOperand x = arrays.operand(1, b);
    const bool own = !g.accumulate && arrays.has_write(0);
    const GradientPlace place =
        own ? GradientPlace{arrays.write(0, c), true} : arrays.gradient(0, c);
    kernels.gemm({.m = g.m,
                  .n = g.n,
                  .k = g.k,
                  .a = {a.array, by_columns ? g.k : g.m, !by_columns, a.fp8},
                  .b = {x.array, by_columns ? g.k : g.n, by_columns, x.fp8},
                  .c = {place.data, g.n},
                  .accumulate = !place.fresh});
    return;
  }
  const bool forward = g.role == GemmRole::kForward;
  const ProductOperand weight = arrays.matrix(b, !forward);
  const bool turned = forward || by_columns;
  const Array bias = g.bias ? arrays.weight(1, {g.n, g.input}) : Array{};
  const auto product = [&](std::int64_t first, std::int64_t count, Array to) {
    kernels.gemm({.m = g.m,
                  .n = count,
                  .k = g.k,
                  .a = {a.array, g.k, false, a.fp8},
                  .b = {forward ? weight.array.from(first * g.k) : weight.array, turned ? g.k : g.n,
                        turned, weight.fp8},
                  .c = {to, count},
                  .accumulate = false,
                  .bias = g.bias ? bias.from(first) : bias});
  };
  // The outputs may lie in several buffers, one behind the other.
  std::int64_t first = 0;
  for (std::size_t i = 0; first < g.n; ++i) {
    const RowArray out = arrays.write_rows(i, {g.m, g.n, g.output});
    const std::int64_t count = std::min(out.stride, g.n - first);
    product(first, count, out.array);
    first += count;
  }
}

void call(const GroupedGemm& g, std::span<const std::int64_t> begins, KernelArrays& arrays,
          Kernels& kernels) {
  const bool gradient = g.role == GemmRole::kWeightGradient;
  const bool forward = g.role == GemmRole::kForward;
  const std::int64_t n = forward ? g.outputs : g.inputs, k = forward ? g.inputs : g.outputs;
  const ArraySpec weights{g.experts * g.outputs * g.inputs, g.input};
  const Array a = arrays.read(0, {g.rows * k, g.input});
  if (!gradient) {
    kernels.grouped_gemm({.all = {.m = g.rows,
                                  .n = n,
                                  .k = k,
                                  .a = {a, k},
                                  .b = {arrays.weight(0, weights), g.inputs, forward},
                                  .c = {arrays.write(0, {g.rows * n, g.output}), n}},
                          .sums_rows = false,
                          .begins = begins});
    return;
  }
  const ArraySpec sums{weights.elements, g.output};
  const bool own = !g.accumulate && arrays.has_write(0);
  const GradientPlace place =
      own ? GradientPlace{arrays.write(0, sums), true} : arrays.gradient(0, sums);
  kernels.grouped_gemm({.all = {.m = g.outputs,
                                .n = g.inputs,
                                .k = g.rows,
                                .a = {a, g.outputs, true},
                                .b = {arrays.read(1, {g.rows * g.inputs, g.input}), g.inputs},
                                .c = {place.data, g.inputs},
                                .accumulate = !place.fresh},
                        .sums_rows = true,
                        .begins = begins});
}

void call(const Normalization& norm, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t rows = norm.size.rows(), width = norm.size.width;
  const ArraySpec whole{norm.size.elements, norm.type}, row{width, norm.type};
  // Latents are normed out of rows that also hold the rotary key.
  const RowArray from = arrays.read_rows(0, {rows, width, norm.type});
  const Array x = from.array, weight = arrays.weight(0, row);
  if (!norm.backward) {
    const Array bias = norm.bias ? arrays.weight(1, row) : Array{};
    if (!norm.residual) {
      kernels.norm({.kind = norm_kind(norm.norm),
                    .x = x,
                    .weight = weight,
                    .bias = bias,
                    .y = arrays.write(0, whole),
                    .rows = rows,
                    .width = width,
                    .x_stride = from.stride,
                    .y_stride = width});
      return;
    }
    const Array branch_bias = norm.branch_bias ? arrays.weight(norm.bias ? 2 : 1, row) : Array{};
    kernels.add_norm({.kind = norm_kind(norm.norm),
                      .branch = x,
                      .branch_bias = branch_bias,
                      .residual = arrays.read(1, whole),
                      .weight = weight,
                      .bias = bias,
                      .sum = arrays.write(0, whole),
                      .y = arrays.write(1, whole),
                      .rows = rows,
                      .width = width});
    return;
  }
  const ArraySpec sums{width, norm.gradient};
  const GradientPlace place = arrays.gradient(0, sums);
  const Array bias = norm.bias ? arrays.gradient(1, sums).data : Array{};
  // In steps the norm has kept what it read twice, last in the type of the model.
  const bool in_steps = arrays.reads_more_than(norm.residual ? 3 : 2);
  const std::size_t gradient = in_steps ? 2 : 1;
  const Array residual = norm.residual ? arrays.read(gradient + 1, whole) : Array{};
  kernels.norm_backward({.kind = norm_kind(norm.norm),
                         .x = in_steps ? arrays.read(1, whole) : x,
                         .weight = weight,
                         .dy = arrays.read(gradient, whole),
                         .residual = residual,
                         .dx = arrays.write(0, whole),
                         .weight_gradient = place.data,
                         .bias_gradient = bias,
                         .accumulate = !place.fresh,
                         .rows = rows,
                         .width = width,
                         .x_stride = in_steps ? width : from.stride,
                         .dy_stride = width});
}

// Norms of one head of all tokens, or of all heads of a token as one row.
void call(const QueryKeyNorm& norm, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t tokens = norm.size.rows(), packed = norm.query + 2 * norm.key;
  const HeadSpec spec{tokens, norm.query, norm.key, norm.key, norm.type};
  const Array gradient = norm.backward ? arrays.write(0, {tokens * packed, norm.type}) : Array{};
  // Keys may have a buffer of their own.
  const std::size_t keys = arrays.reads_more_than(norm.backward ? 2 : 1) ? 1 : 0;
  std::int64_t begin = 0;
  for (std::size_t side = 0; side < 2; ++side) {
    const HeadArray heads = side == 0 ? arrays.read_heads(0, HeadSide::kQuery, spec)
                                      : arrays.read_heads(keys, HeadSide::kKey, spec);
    const std::int64_t all = side == 0 ? norm.query : norm.key;
    const std::int64_t width = side == 0 ? norm.query_norm : norm.key_norm;
    const Array weight = arrays.weight(side, {width, norm.type});
    GradientPlace place{{}, false};
    Array out;
    if (norm.backward) {
      place = arrays.gradient(side, {width, norm.gradient});
    } else {
      out = arrays.write(side, {tokens * all, norm.type});
    }
    for (std::int64_t at = 0; at < all; at += width) {
      const Array x = heads.array.from(at);
      if (!norm.backward) {
        kernels.norm({.kind = NormKind::kRms,
                      .x = x,
                      .weight = weight,
                      .y = out.from(at),
                      .rows = tokens,
                      .width = width,
                      .x_stride = heads.stride,
                      .y_stride = all});
        continue;
      }
      const Array here = gradient.from(begin + at);
      kernels.norm_backward({.kind = NormKind::kRms,
                             .x = x,
                             .weight = weight,
                             .dy = here,
                             .dx = here,
                             .weight_gradient = place.data,
                             .accumulate = !place.fresh || at > 0,
                             .rows = tokens,
                             .width = width,
                             .x_stride = heads.stride,
                             .dy_stride = packed});
    }
    begin += all;
  }
}

void call(const Activation& activation, KernelArrays& arrays, Kernels& kernels) {
  const bool gated = activation.mlp == Mlp::kSwiglu;
  const auto kind = gated ? ActivationKind::kSwiglu : ActivationKind::kGelu;
  const std::int64_t rows = activation.size.rows(), width = activation.size.width;
  const std::int64_t up_width = gated ? 2 * width : width;
  const ArraySpec out{rows * width, activation.type}, ups{rows * up_width, activation.type};
  // The linear half may lie in a buffer of its own.
  const RowArray up = arrays.read_rows(0, {rows, up_width, activation.type});
  const bool apart = up.stride < up_width;
  const Array linear = apart ? arrays.read(1, out) : Array{};
  const Array bias = activation.bias ? arrays.weight(0, {up_width, activation.type}) : Array{};
  if (activation.backward) {
    GradientPlace of_bias{{}, true};
    if (activation.bias_gradient) of_bias = arrays.gradient(0, {up_width, DataType::kFp32});
    // In steps the gate has been kept apart, before the gradient, which comes last.
    std::size_t gradient = 1;
    while (arrays.reads_more_than(gradient + 1)) ++gradient;
    kernels.activation_backward({.kind = kind,
                                 .up = up.array,
                                 .linear = linear,
                                 .bias = bias,
                                 .gradient = arrays.read(gradient, out),
                                 .up_gradient = arrays.write(0, ups),
                                 .bias_gradient = of_bias.data,
                                 .accumulate = !of_bias.fresh,
                                 .rows = rows,
                                 .width = width});
  } else {
    kernels.activation({.kind = kind,
                        .up = up.array,
                        .linear = linear,
                        .bias = bias,
                        .out = arrays.write(0, out),
                        .rows = rows,
                        .width = width});
  }
}

void call(const Rotary& rotary, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t tokens = rotary.size.rows(), batch = tokens / rotary.sequence;
  const std::int64_t key = rotary.kv_heads * rotary.head_dim;
  const HeadSpec spec{tokens, rotary.heads * rotary.head_dim, key, key, rotary.type};
  const ArraySpec whole{tokens * spec.packed(), rotary.type};
  const Array packed = rotary.backward ? arrays.write(0, whole) : Array{};
  const auto arrays_of = [&](HeadSide side) -> RotaryArrays {
    const std::size_t i = side == HeadSide::kQuery ? 0 : 1;
    const std::int64_t heads = side == HeadSide::kQuery ? rotary.heads : rotary.kv_heads;
    const std::int64_t width = spec.width(side);
    if (rotary.backward) {
      const HeadArray here{packed.from(spec.begin(side)), spec.packed()};
      return {heads, here, here};
    }
    return {heads,
            arrays.read_heads(i, side, spec),
            {arrays.write(i, {tokens * width, rotary.type}), width}};
  };
  kernels.rotary({.batch = batch,
                  .sequence = rotary.sequence,
                  .head_dim = rotary.head_dim,
                  .query = arrays_of(HeadSide::kQuery),
                  .key = arrays_of(HeadSide::kKey),
                  .backward = rotary.backward,
                  .places = arrays.part().places});
}

void call(const ResidualAdd& sum, KernelArrays& arrays, Kernels& kernels) {
  const ArraySpec whole{sum.size.elements, sum.type};
  const Array branch = arrays.read(0, whole), residual = arrays.read(1, whole);
  const Array bias = sum.bias ? arrays.weight(0, {sum.size.width, sum.type}) : Array{};
  const std::int64_t rows = bias ? sum.size.rows() : 1;
  kernels.add_residual({.branch = branch,
                        .bias = bias,
                        .residual = residual,
                        .out = arrays.write(0, whole),
                        .rows = rows,
                        .columns = sum.size.elements / rows});
}

void call(const TokenEmbedding& embedding, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t width = embedding.size.width, count = embedding.size.rows();
  const TableSlice slice{arrays.part().first_token_row, embedding.vocab, width};
  const std::int64_t elements = embedding.vocab * width;
  const ArraySpec whole{embedding.size.elements, embedding.type};
  const Array tokens = arrays.tokens(count, embedding.vocab, embedding.ahead.value);
  if (embedding.backward) {
    const ArraySpec table{elements, embedding.gradient, {}, true};
    // The gradient comes behind the block's tokens, which a prediction module has none of.
    const Array gradient = arrays.read(embedding.ahead ? 0 : 1, whole);
    kernels.embed_tokens_backward({.slice = slice,
                                   .tokens = tokens,
                                   .count = count,
                                   .gradient = gradient,
                                   .table_gradient = table_gradient(arrays, table)});
  } else {
    const Array table = arrays.weight(0, {elements, embedding.type, {}, true});
    kernels.embed_tokens({.slice = slice,
                          .tokens = tokens,
                          .count = count,
                          .table = table,
                          .out = arrays.write(0, whole)});
  }
}

namespace {

// Calls body(arguments) for runs of rows whose positions follow each other: all at once, or the
// halves of each sequence of which a rank has parts.
template <class Body>
void for_positions(const PositionArguments& all, const SequencePlaces& places, const Body& body) {
  if (places.half == 0) return body(all);
  for (std::int64_t row = 0; row < all.rows;) {
    const std::int64_t token = (all.first_row + row) % all.sequence;
    PositionArguments run = all;
    run.rows = std::min(all.rows - row, places.half - token % places.half);
    run.x = all.x.from(row * all.width);
    run.table = all.table.from(places.at(token) * all.width);
    run.first_row = 0;
    body(run);
    row += run.rows;
  }
}

}  // namespace

void call(const PositionEmbedding& embedding, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t width = embedding.size.width, rows = embedding.size.rows();
  const std::int64_t elements = embedding.positions * width, offset = embedding.offset * width;
  const ArraySpec whole{embedding.size.elements, embedding.type};
  if (!embedding.backward) {
    const Array table = arrays.weight(0, {elements, embedding.type, {}, true});
    const PositionArguments all{.x = arrays.write(0, whole),
                                .table = table.from(offset),
                                .rows = rows,
                                .first_row = arrays.part().first_position,
                                .sequence = embedding.sequence,
                                .width = width};
    for_positions(all, arrays.part().places,
                  [&](const PositionArguments& run) { kernels.add_positions(run); });
    return;
  }
  const GradientPlace place = arrays.gradient(0, {elements, embedding.gradient, {}, true});
  if (place.fresh) kernels.fill(place.data, 0, elements);
  const PositionArguments all{.x = arrays.read(0, whole),
                              .table = place.data.from(offset),
                              .rows = rows,
                              .first_row = arrays.part().first_position,
                              .sequence = embedding.sequence,
                              .width = width};
  for_positions(all, arrays.part().places,
                [&](const PositionArguments& run) { kernels.add_positions_backward(run); });
}

// A unit's gradient may hold what the head has written.
void call(const ZeroTableGradient& zero, KernelArrays& arrays, Kernels& kernels) {
  const ArraySpec table{zero.size.elements, zero.type};
  if (!arrays.has_write(0)) {
    const GradientPlace place = arrays.gradient(0, table);
    if (place.fresh) kernels.fill(place.data, 0, table.elements);
    return;
  }
  kernels.fill(arrays.write(0, table), 0, table.elements);
}

void call(const CrossEntropy& loss, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t rows = loss.size.rows(), columns = loss.size.width;
  const RankPart part = arrays.part();
  const LogitSlice slice = logit_slice(part, columns);
  const Array logits = arrays.write(0, {loss.size.elements, loss.type});
  const Array targets = arrays.targets(rows, columns, loss.ahead.value);
  // Largest logits, sums of exponentials, targets' logits; a made-up sum is not 0.
  const ArraySpec figures{3 * rows, DataType::kFp32, 1.0F};
  if (loss.backward) {
    const Array largest = arrays.read(1, figures);
    const float scale = part.loss_scale * (loss.ahead ? part.prediction_scale : 1);
    kernels.cross_entropy_backward({.slice = slice,
                                    .logits = logits,
                                    .targets = targets,
                                    .rows = rows,
                                    .largest = largest,
                                    .sum = largest.from(rows),
                                    .scale = scale});
  } else {
    const Array largest = arrays.write(1, figures);
    kernels.cross_entropy({.slice = slice,
                           .logits = logits,
                           .targets = targets,
                           .rows = rows,
                           .largest = largest,
                           .sum = largest.from(rows),
                           .target = largest.from(2 * rows)});
  }
}

void call(const BiasGradient& gradient, KernelArrays& arrays, Kernels& kernels) {
  const KernelSize& size = gradient.size;
  const Array data = arrays.read(0, {size.elements, gradient.type});
  const GradientPlace place = arrays.gradient(0, {size.width, gradient.gradient});
  kernels.bias_gradient({.data = data,
                         .gradient = place.data,
                         .rows = size.rows(),
                         .columns = size.width,
                         .accumulate = !place.fresh});
}

void call(const Accumulate& sum, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t count = sum.size.elements;
  const Array more = arrays.read(0, {count, sum.from});
  const GradientPlace place = arrays.gradient(0, {count, sum.to});
  if (place.fresh) {
    kernels.copy(more, place.data, count);
  } else {
    kernels.accumulate(more, place.data, count);
  }
}

void call(const Cast& cast, KernelArrays& arrays, Kernels& kernels) {
  const std::int64_t count = cast.size.elements;
  kernels.copy(arrays.read(0, {count, cast.from}), arrays.write(0, {count, cast.to}), count);
}

bool call_kernel(const Operation::Work& work, KernelArrays& arrays, Kernels& kernels) {
  return std::visit(
      [&](const auto& own) {
        using Own = std::decay_t<decltype(own)>;
        if constexpr (HasKernel<Own>) {
          call(own, arrays, kernels);
          return true;
        } else {
          return false;
        }
      },
      work);
}

}  // namespace stepcast
