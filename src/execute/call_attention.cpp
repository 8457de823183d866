// SPDX-License-Identifier: Apache-2.0
#include "execute/call_kernel.h"

namespace stepcast {
namespace {

AttentionShape shape_of(const AttentionSizes& sizes) {
  return {sizes.batch, sizes.heads, sizes.kv_heads, sizes.sequence, sizes.head_dim, true};
}

// One call's heads and whole arrays, by the shape of the kernels.
class AttentionCall {
 public:
  AttentionCall(const AttentionShape& shape, DataType type, KernelArrays& arrays)
      : shape_(shape),
        spec_{shape.batch * shape.sequence, shape.heads * shape.head_dim,
              shape.kv_heads * shape.head_dim, shape.kv_heads * shape.value_width(), type},
        arrays_(arrays) {}
  AttentionCall(const AttentionSizes& sizes, DataType type, KernelArrays& arrays)
      : AttentionCall(shape_of(sizes), type, arrays) {}

  const AttentionShape& shape() const { return shape_; }
  HeadArray input(std::size_t i, HeadSide side) const { return arrays_.read_heads(i, side, spec_); }
  // A context, of as many heads as queries.
  HeadArray context(std::size_t i) const { return {read(i, contexts()), context_width()}; }
  HeadArray written_context() const { return {write(0, contexts()), context_width()}; }
  HeadArray gradient(HeadSide side) const { return arrays_.write_heads(side, spec_); }

  std::int64_t context_width() const { return shape_.heads * shape_.value_width(); }
  std::int64_t contexts() const { return spec_.tokens * context_width(); }
  std::int64_t queries() const { return spec_.tokens * spec_.query; }
  std::int64_t scores() const {
    return shape_.batch * shape_.heads * shape_.sequence * shape_.sequence;
  }
  Array read(std::size_t i, std::int64_t elements) const {
    return arrays_.read(i, {elements, spec_.type});
  }
  Array write(std::size_t i, std::int64_t elements) const {
    return arrays_.write(i, {elements, spec_.type});
  }
  std::int64_t rows() const { return spec_.tokens * shape_.heads; }

 private:
  AttentionShape shape_;
  HeadSpec spec_;
  KernelArrays& arrays_;
};

// The logits of this rank's heads among those of all ranks that have exchanged heads.
struct HeadLogits {
  std::int64_t own, all, begin;
  HeadLogits(const Attention& attention, const RankPart& part)
      : own(attention.heads), all(own * part.head_shares), begin(own * part.head_place) {}
};

// A kernel without sinks has run: they join what it wrote.
void join_sinks(const Attention& attention, const AttentionArguments& from, KernelArrays& arrays,
                Kernels& kernels) {
  if (!attention.sinks) return;
  const HeadLogits heads(attention, arrays.part());
  kernels.variants().add_sinks(
      {.shape = from.shape,
       .context = from.context,
       .log_sum_exp = from.log_sum_exp,
       .sinks = arrays.weight(0, {heads.all, attention.type}).from(heads.begin)});
}

void add_sink_gradient(const Attention& attention, const AttentionGradientArguments& from,
                       KernelArrays& arrays, Kernels& kernels) {
  if (!attention.sinks) return;
  const HeadLogits heads(attention, arrays.part());
  const GradientPlace place = arrays.gradient(0, {heads.all, DataType::kFp32});
  if (place.fresh) kernels.fill(place.data, 0, heads.all);
  kernels.variants().sink_gradient(
      {.shape = from.shape,
       .context = from.context,
       .context_gradient = from.context_gradient,
       .log_sum_exp = from.log_sum_exp,
       .sinks = arrays.weight(0, {heads.all, attention.type}).from(heads.begin),
       .gradient = place.data.from(heads.begin)});
}

// About the logarithm of a row's sum for scores near 0; backward recomputes probabilities with it.
constexpr float kLogSum = 6;

}  // namespace

void call(const Attention& attention, KernelArrays& arrays, Kernels& kernels) {
  const AttentionShape shape{
      attention.batch,           attention.heads,        attention.kv_heads,
      attention.query_length,    attention.head_dim,     attention.causal,
      attention.value_dim.value, attention.window.value, attention.chunk.value};
  const AttentionCall own(shape, attention.type, arrays);
  const HeadArray query = own.input(0, HeadSide::kQuery), key = own.input(1, HeadSide::kKey),
                  value = own.input(2, HeadSide::kValue);
  const ArraySpec row_sums{own.rows(), DataType::kFp32, kLogSum};
  if (!attention.backward) {
    const AttentionArguments forward{.shape = shape,
                                     .query = query,
                                     .key = key,
                                     .value = value,
                                     .context = own.written_context(),
                                     .log_sum_exp = arrays.write(1, row_sums)};
    kernels.attention(forward);
    return join_sinks(attention, forward, arrays, kernels);
  }
  // The workspace comes behind the packed gradients, or those of queries, keys and values.
  const std::size_t workspace = arrays.has_write(3) ? 3 : 1;
  const AttentionGradientArguments backward{
      .shape = shape,
      .query = query,
      .key = key,
      .value = value,
      .context = own.context(3),
      .log_sum_exp = arrays.read(4, row_sums),
      .context_gradient = own.context(5),
      .query_gradient = own.gradient(HeadSide::kQuery),
      .key_gradient = own.gradient(HeadSide::kKey),
      .value_gradient = own.gradient(HeadSide::kValue),
      .workspace = arrays.write(workspace, {own.queries(), DataType::kFp32})};
  kernels.attention_backward(backward);
  add_sink_gradient(attention, backward, arrays, kernels);
}

void call(const AttentionProduct& product, KernelArrays& arrays, Kernels& kernels) {
  const AttentionCall own(product.sizes, product.type, arrays);
  const AttentionShape& shape = own.shape();
  switch (product.kind) {
    case AttentionProductKind::kScores:
      return kernels.attention_scores({.shape = shape,
                                       .query = own.input(0, HeadSide::kQuery),
                                       .key = own.input(1, HeadSide::kKey),
                                       .scores = own.write(0, own.scores())});
    case AttentionProductKind::kContext:
      return kernels.attention_context({.shape = shape,
                                        .matrix = own.read(0, own.scores()),
                                        .heads = own.input(1, HeadSide::kValue),
                                        .out = own.write(0, own.contexts())});
    case AttentionProductKind::kProbabilitiesGradient:
      return kernels.probabilities_gradient({.shape = shape,
                                             .matrix = own.read(0, own.contexts()),
                                             .heads = own.input(1, HeadSide::kValue),
                                             .out = own.write(0, own.scores())});
    case AttentionProductKind::kValueGradient:
      return kernels.value_gradient({.shape = shape,
                                     .probabilities = own.read(0, own.scores()),
                                     .by_head = own.read(1, own.contexts()),
                                     .gradient = own.write(0, own.contexts())});
    case AttentionProductKind::kQueryGradient:
      return kernels.query_gradient({.shape = shape,
                                     .matrix = own.read(0, own.scores()),
                                     .heads = own.input(1, HeadSide::kKey),
                                     .out = own.write(0, own.contexts())});
    case AttentionProductKind::kKeyGradient:
      return kernels.key_gradient({.shape = shape,
                                   .matrix = own.read(0, own.scores()),
                                   .heads = own.input(1, HeadSide::kQuery),
                                   .out = own.write(0, own.contexts())});
  }
}

void call(const AttentionSoftmax& softmax, KernelArrays& arrays, Kernels& kernels) {
  const AttentionCall own(softmax.sizes, softmax.type, arrays);
  const Array first = own.read(0, own.scores());
  if (!softmax.backward) {
    return kernels.masked_softmax(own.shape(), first, own.write(0, own.scores()));
  }
  const Array probabilities = own.read(1, own.scores());
  kernels.masked_softmax_backward({.shape = own.shape(),
                                   .probabilities = probabilities,
                                   .probabilities_gradient = first,
                                   .scores_gradient = own.write(0, own.scores())});
}

void call(const ContextTranspose& transpose, KernelArrays& arrays, Kernels& kernels) {
  const AttentionCall own(transpose.sizes, transpose.type, arrays);
  if (transpose.backward) {
    kernels.context_transpose_backward(own.shape(), own.context(0), own.write(0, own.contexts()));
  } else {
    kernels.context_transpose(own.shape(), own.read(0, own.contexts()), own.written_context());
  }
}

void call(const QkvGather& gather, KernelArrays& arrays, Kernels& kernels) {
  const AttentionCall own(gather.sizes, gather.type, arrays);
  kernels.gather_qkv_gradient({.shape = own.shape(),
                               .query_gradient = own.read(0, own.contexts()),
                               .key_gradient = own.read(1, own.contexts()),
                               .value_gradient = own.read(2, own.contexts()),
                               .query = own.gradient(HeadSide::kQuery),
                               .key = own.gradient(HeadSide::kKey),
                               .value = own.gradient(HeadSide::kValue)});
}

}  // namespace stepcast
