// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "core/assert.h"
#include "execute/operation_call.h"

namespace stepcast {
namespace {

using cpu::AttentionShape;

enum class Part { kQuery, kKey, kValue };

class AttentionCall {
 public:
  explicit AttentionCall(const OperationCall& call)
      : call_(call),
        shape_{call.shape.batch,    call.shape.heads,    call.shape.kv_heads,
               call.shape.sequence, call.shape.head_dim, true},
        query_(shape_.heads * shape_.head_dim),
        key_(shape_.kv_heads * shape_.head_dim) {}

  const AttentionShape& shape() const { return shape_; }
  HeadArray context(std::size_t i) const { return {call_.read(i), query_}; }
  HeadArray written_context() const { return {call_.write(0), query_}; }

  // A buffer of its own, or a part of the packed projection.
  HeadArray input(std::size_t i, Part part) const {
    const BufferId id = call_.operation.reads[i];
    if (call_.buffer(id).elements == call_.shape.tokens * packed()) {
      return {call_.data(id).from(begin(part)), packed()};
    }
    return {call_.data(id), part == Part::kQuery ? query_ : key_};
  }
  HeadArray packed_output(Part part) const { return {call_.write(0).from(begin(part)), packed()}; }

 private:
  std::int64_t packed() const { return query_ + 2 * key_; }
  std::int64_t begin(Part part) const {
    return part == Part::kQuery ? 0 : part == Part::kKey ? query_ : query_ + key_;
  }

  const OperationCall& call_;
  AttentionShape shape_;
  std::int64_t query_, key_;  // widths
};

}  // namespace

void run_attention(const OperationCall& call, const Attention& attention) {
  const AttentionCall own(call);
  const HeadArray query = own.input(0, Part::kQuery), key = own.input(1, Part::kKey),
                  value = own.input(2, Part::kValue);
  if (!attention.backward) {
    call.kernels().attention(own.shape(), query, key, value, own.written_context(), call.write(1));
    return;
  }
  call.kernels().attention_backward(own.shape(), query, key, value, own.context(3), call.read(4),
                                    own.context(5), own.packed_output(Part::kQuery),
                                    own.packed_output(Part::kKey), own.packed_output(Part::kValue),
                                    call.write(1));
}

void run_unfused_attention(const OperationCall& call) {
  const AttentionCall own(call);
  const AttentionShape& shape = own.shape();
  const std::string_view name = call.operation.name;
  if (name == "scores") {
    call.kernels().attention_scores(shape, own.input(0, Part::kQuery), own.input(1, Part::kKey),
                                    call.write(0));
  } else if (name == "softmax" && !call.backward()) {
    call.kernels().masked_softmax(shape, call.read(0), call.write(0));
  } else if (name == "context") {
    call.kernels().attention_context(shape, call.read(0), own.input(1, Part::kValue),
                                     call.write(0));
  } else if (name == "context_transpose" && !call.backward()) {
    call.kernels().context_transpose(shape, call.read(0), own.written_context());
  } else if (name == "context_transpose") {
    call.kernels().context_transpose_backward(shape, own.context(0), call.write(0));
  } else if (name == "context_dgrad") {
    call.kernels().probabilities_gradient(shape, call.read(0), own.input(1, Part::kValue),
                                          call.write(0));
  } else if (name == "value_grad") {
    call.kernels().value_gradient(shape, call.read(0), call.read(1), call.write(0));
  } else if (name == "softmax") {
    call.kernels().masked_softmax_backward(shape, call.read(1), call.read(0), call.write(0));
  } else if (name == "query_grad") {
    call.kernels().query_gradient(shape, call.read(0), own.input(1, Part::kKey), call.write(0));
  } else if (name == "key_grad") {
    call.kernels().key_gradient(shape, call.read(0), own.input(1, Part::kQuery), call.write(0));
  } else if (name == "qkv_gather") {
    call.kernels().gather_qkv_gradient(
        shape, call.read(0), call.read(1), call.read(2), own.packed_output(Part::kQuery),
        own.packed_output(Part::kKey), own.packed_output(Part::kValue));
  } else {
    STEPCAST_ASSERT(false, "every operation of unfused attention is run");
  }
}

}  // namespace stepcast
