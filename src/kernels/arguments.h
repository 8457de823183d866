// SPDX-License-Identifier: Apache-2.0
// Each kernel is called with one of these: sizes, and where its arrays lie. Whoever runs a program
// or measures a kernel fills them, and the kernels of every device take them (kernels/kernels.h).
//
// Activations and weights of a call have one type; gradients of weights may be fp32 beside it;
// statistics (log-sum-exp, parts of the loss) are fp32. Arrays that may be absent say so.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/adamw.h"
#include "kernels/array.h"
#include "kernels/dropout_shape.h"
#include "kernels/fp8_format.h"
#include "kernels/shapes.h"

namespace stepcast {

struct MatrixArray {
  Array array;
  std::int64_t stride;  // elements from one row to the next
  bool transposed = false;
  Fp8Numbers fp8 = {};  // of an array in fp8
};

// Heads inside rows of tokens, as Heads of kernels/strided.h.
struct HeadArray {
  Array array;
  std::int64_t stride;
};

// Heads before and after their rotation; in place where they are the same.
struct RotaryArrays {
  std::int64_t heads;
  HeadArray in, out;
};

// `bias`, by columns, may be absent. Both operands are fp8, or neither.
struct GemmArguments {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  MatrixArray a;
  MatrixArray b;
  MatrixArray c;
  bool accumulate = false;
  Array bias = {};
};

// A product for each group of rows. `all` is what one product of the rows of all groups would be:
// they are its m, or with `sums_rows` its k. Each group has a matrix of its own: B in the first
// case, C in the second. These lie one after the other. There is no bias.
struct GroupedGemmArguments {
  GemmArguments all;
  bool sums_rows;
  std::span<const std::int64_t> begins;  // of each group's rows, and last the end of all

  std::int64_t groups() const { return static_cast<std::int64_t>(begins.size()) - 1; }
  std::int64_t rows(std::int64_t group) const {
    const auto i = static_cast<std::size_t>(group);
    return begins[i + 1] - begins[i];
  }
  std::int64_t matrix() const { return all.n * (sums_rows ? all.m : all.k); }  // its elements
  GemmArguments of(std::int64_t group) const {
    GemmArguments out = all;
    const std::int64_t row = begins[static_cast<std::size_t>(group)];
    (sums_rows ? out.k : out.m) = rows(group);
    MatrixArray& with_rows = sums_rows ? out.b : out.c;
    MatrixArray& own = sums_rows ? out.c : out.b;
    out.a.array = out.a.array.from(row * out.a.stride);
    with_rows.array = with_rows.array.from(row * with_rows.stride);
    own.array = own.array.from(group * matrix());
    return out;
  }
};

// *largest becomes the largest magnitude of x, or where it `joins` the larger of both.
struct LargestArguments {
  Array x = {};
  std::int64_t count;
  float* largest;
  bool joins = false;
};

// Copies x in fp8: by rows, and by columns as the transposed matrix. Either may be absent. The
// scale is the largest power of two that leaves *largest among the numbers of the format, 1 where
// that is 0 or no number; larger ones become the largest. *factor gets one over the scale. The
// largest and the factor lie in the device's memory. A power of two keeps the digits of a number
// whatever the scale, so that ranks which hold parts of a tensor round as one that holds all of it.
struct Fp8CastArguments {
  Array x = {};
  std::int64_t rows;
  std::int64_t columns;
  Fp8Format format;
  const float* largest;
  float* factor;
  Array by_rows = {};
  Array by_columns = {};
};

// Numbers in fp8 into the transposed matrix.
struct Fp8TransposeArguments {
  Array from = {};
  Array to = {};
  std::int64_t rows;
  std::int64_t columns;
};

struct AttentionArguments {
  AttentionShape shape;
  HeadArray query;
  HeadArray key;
  HeadArray value;
  HeadArray context;
  Array log_sum_exp = {};
};

// `workspace`: batch*sequence*heads*head_dim elements of fp32.
struct AttentionGradientArguments {
  AttentionShape shape;
  HeadArray query;
  HeadArray key;
  HeadArray value;
  HeadArray context;
  Array log_sum_exp = {};
  HeadArray context_gradient;
  HeadArray query_gradient;
  HeadArray key_gradient;
  HeadArray value_gradient;
  Array workspace = {};
};

// `sinks`: a logit for each head. The context and its sums become those with it.
struct AttentionSinkArguments {
  AttentionShape shape;
  HeadArray context;
  Array log_sum_exp = {};
  Array sinks = {};
};

// Context and sums are those with the sinks. It adds to the gradient.
struct SinkGradientArguments {
  AttentionShape shape;
  HeadArray context;
  HeadArray context_gradient;
  Array log_sum_exp = {};
  Array sinks = {};
  Array gradient = {};
};

struct AttentionScoresArguments {
  AttentionShape shape;
  HeadArray query;
  HeadArray key;
  Array scores = {};
};

// `matrix` is what a product reads beside heads: probabilities, or gradients of contexts or
// scores.
struct HeadProductArguments {
  AttentionShape shape;
  Array matrix = {};
  HeadArray heads;
  Array out = {};
};

struct ValueGradientArguments {
  AttentionShape shape;
  Array probabilities = {};
  Array by_head = {};
  Array gradient = {};
};

struct SoftmaxGradientArguments {
  AttentionShape shape;
  Array probabilities = {};
  Array probabilities_gradient = {};
  Array scores_gradient = {};
};

struct QkvGatherArguments {
  AttentionShape shape;
  Array query_gradient = {};
  Array key_gradient = {};
  Array value_gradient = {};
  HeadArray query;
  HeadArray key;
  HeadArray value;
};

struct NormArguments {
  NormKind kind;
  Array x = {};
  Array weight = {};
  Array bias = {};
  Array y = {};
  std::int64_t rows;
  std::int64_t width;
  std::int64_t x_stride;
  std::int64_t y_stride;
};

// `branch_bias`, by columns, may be absent.
struct AddNormArguments {
  NormKind kind;
  Array branch = {};
  Array branch_bias = {};
  Array residual = {};
  Array weight = {};
  Array bias = {};
  Array sum = {};
  Array y = {};
  std::int64_t rows;
  std::int64_t width;
};

// `residual` (may be absent) lies as dy does and is added to dx.
struct NormGradientArguments {
  NormKind kind;
  Array x = {};
  Array weight = {};
  Array dy = {};
  Array residual = {};
  Array dx = {};
  Array weight_gradient = {};
  Array bias_gradient = {};
  bool accumulate;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t x_stride;
  std::int64_t dy_stride;
};

// `linear`: the second half of gated rows, where `up` has but the first.
struct ActivationArguments {
  ActivationKind kind;
  Array up = {};
  Array linear = {};
  Array bias = {};
  Array out = {};
  std::int64_t rows;
  std::int64_t width;
};

// `bias_gradient` (may be absent) gets the sums of up_gradient over the rows.
struct ActivationGradientArguments {
  ActivationKind kind;
  Array up = {};
  Array linear = {};
  Array bias = {};
  Array gradient = {};
  Array up_gradient = {};
  Array bias_gradient = {};
  bool accumulate;
  std::int64_t rows;
  std::int64_t width;
};

struct RotaryArguments {
  std::int64_t batch;
  std::int64_t sequence;
  std::int64_t head_dim;
  RotaryArrays query;
  RotaryArrays key;
  bool backward;
  SequencePlaces places = {};
};

struct BiasGradientArguments {
  Array data = {};
  Array gradient = {};
  std::int64_t rows;
  std::int64_t columns;
  bool accumulate;
};

struct ResidualArguments {
  Array branch = {};
  Array bias = {};
  Array residual = {};
  Array out = {};
  std::int64_t rows;
  std::int64_t columns;
};

// Tokens are int64.
struct EmbeddingArguments {
  TableSlice slice;
  Array tokens = {};
  std::int64_t count;
  Array table = {};
  Array out = {};
};

struct EmbeddingGradientArguments {
  TableSlice slice;
  Array tokens = {};
  std::int64_t count;
  Array gradient = {};
  Array table_gradient = {};
};

// Rows of `x`, or backward of its gradient, begin at row `first_row` of a sequence.
struct PositionArguments {
  Array x = {};
  Array table = {};
  std::int64_t rows;
  std::int64_t first_row;
  std::int64_t sequence;
  std::int64_t width;
};

// The parts of the loss are fp32, targets int64.
struct LossArguments {
  LogitSlice slice;
  Array logits = {};
  Array targets = {};
  std::int64_t rows;
  Array largest = {};
  Array sum = {};
  Array target = {};
};

struct LossGradientArguments {
  LogitSlice slice;
  Array logits = {};
  Array targets = {};
  std::int64_t rows;
  Array largest = {};
  Array sum = {};
  float scale;
};

struct RescaleArguments {
  Array local_largest = {};
  Array largest = {};
  Array sum = {};
  std::int64_t rows;
};

struct LossSumArguments {
  Array largest = {};
  Array sum = {};
  Array target = {};
  std::int64_t rows;
  double* total;
};

// `step` counts from 1; weight and moments are fp32. `rounded` (may be absent) gets the weights in
// its own type. Where `squared_norm` is not null, gradients are clipped to what it says.
struct AdamWArguments {
  AdamW settings{};
  std::int64_t step;
  const float* squared_norm;
  Array gradient = {};
  Array weight = {};
  Array moment1 = {};
  Array moment2 = {};
  Array rounded = {};
  std::int64_t count;
};

// A matrix whose rows may be parts of longer ones.
struct StridedRows {
  Array array;
  std::int64_t stride;  // elements from one row to the next
};

struct LatentRotaryArguments {
  LatentShape shape;
  Array query = {};
  Array up = {};
  StridedRows rotary_key;
  Array key = {};
  Array value = {};
};

struct LatentRotaryGradientArguments {
  LatentShape shape;
  Array query_gradient = {};
  Array key_gradient = {};
  Array value_gradient = {};
  Array up_gradient = {};
  Array rotary_gradient = {};
};

struct CopyColumnsArguments {
  StridedRows from;
  StridedRows to;
  std::int64_t rows;
  std::int64_t columns;
};

// Rows that lie at three distances: row (i, j, k) begins i*strides[0] + j*strides[1] +
// k*strides[2] elements behind the first.
struct SpreadRows {
  Array array = {};
  std::array<std::int64_t, 3> strides{};
};

// Rows of `columns` elements, of which each is the sum of `terms` that lie `term_stride` apart, go
// to others, or are added to them. Without a place to come from they are zeros.
struct SpreadRowsArguments {
  SpreadRows from;
  SpreadRows to;
  std::array<std::int64_t, 3> counts{1, 1, 1};
  std::int64_t columns = 0;
  std::int64_t terms = 1, term_stride = 0;
  bool adds = false;
};

// Attention over some of the keys joins that over others. They have met `rows` of the `all_rows`
// queries of a sequence, from `first_row` on. Contexts of both lie alike; `part_sums` are
// log-sum-exps of batch x heads x rows, sequences all_rows x heads apart, and `sums` of batch x
// heads x all_rows. The first part is taken as it is.
struct MergedPartArguments {
  std::int64_t batch, heads, width;
  std::int64_t rows, all_rows, first_row;
  HeadArray part;
  Array part_sums = {};
  HeadArray context;
  Array sums = {};
  bool is_first = false;
};

// `bias` (by columns) and `residual` may be absent. The mask is int8, 1 for what is kept.
struct DropoutArguments {
  DropoutShape shape;
  Array x = {};
  Array bias = {};
  Array residual = {};
  Array out = {};
  Array mask = {};
};

struct DropoutGradientArguments {
  DropoutShape shape;
  Array gradient = {};
  Array mask = {};
  Array out = {};
};

// Choices, tokens of rows and indices are int64, what was chosen int8.
// `bias` (fp32, by experts, may be absent) joins the probabilities where they choose.
struct RouteArguments {
  RouterShape shape;
  Array logits = {};
  Array choice = {};
  Array bias = {};
  Array probabilities = {};
  Array chosen = {};
};

struct RouteGradientArguments {
  RouterShape shape;
  Array probabilities = {};
  Array chosen = {};
  Array weight_gradient = {};
  Array logits_gradient = {};
};

struct ChosenRowsArguments {
  RouterShape shape;
  Array probabilities = {};
  Array chosen = {};
  Array token_of_row = {};
  Array weights = {};
};

// `sources`: how many rows there are to take from, where many are taken more than once. A device
// may then read each once; 0: not told.
struct MovedRowsArguments {
  Array from = {};
  Array index = {};
  Array to = {};
  std::int64_t rows;
  std::int64_t width;
  std::int64_t sources = 0;
};

struct AddedRowsArguments {
  Array from = {};
  Array index = {};
  Array to = {};
  std::int64_t rows;
  std::int64_t targets;
  std::int64_t width;
};

struct ExpertActivationArguments {
  ActivationKind kind;
  Array up = {};
  Array weights = {};
  Array out = {};
  std::int64_t rows;
  std::int64_t width;
};

// The rows of one expert. `weights` (fp32, may be absent) are those of the rows.
struct WeighedBiasArguments {
  Array data = {};
  Array bias = {};
  Array weights = {};
  std::int64_t rows;
  std::int64_t width;
};

struct WeighedRowsArguments {
  Array data = {};
  Array weights = {};
  Array out = {};
  std::int64_t rows;
  std::int64_t width;
};

// `out` is fp32: one number a row.
struct BiasProductArguments {
  Array data = {};
  Array bias = {};
  Array out = {};
  std::int64_t rows;
  std::int64_t width;
};

// weight -= rate * sign(gradient). `rounded` (may be absent) gets the weights in its own type.
struct SignStepArguments {
  Array gradient = {};
  Array weight = {};
  Array rounded = {};
  float rate;
  std::int64_t count;
};

struct ExpertActivationGradientArguments {
  ActivationKind kind;
  Array up = {};
  Array weights = {};
  Array gradient = {};
  Array up_gradient = {};
  Array weight_gradient = {};
  std::int64_t rows;
  std::int64_t width;
};

}  // namespace stepcast
