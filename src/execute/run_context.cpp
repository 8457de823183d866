// SPDX-License-Identifier: Apache-2.0
// Attention over a sequence that ranks share. Which tokens meet in a step depends on the rank;
// struct RingStep of program/context_attention.cpp says why all have as much to do.
//
// A rank's keys and values lie in one buffer, all keys before all values. Tokens of a batch follow
// each other by sequences, and each sequence is a call of its own, because halves of the sequences
// do not lie side by side.
#include <algorithm>

#include "core/assert.h"
#include "execute/live_arrays.h"
#include "execute/operation_call.h"
#include "execute/run_by_kind.h"

namespace stepcast {
namespace {

// Rows that a part of attention is about, of `rows` in each of `batch` sequences.
struct Rows {
  std::int64_t first, count;
};

// Queries and keys that meet. A causal mask hides what is behind each query.
struct Meeting {
  Rows queries;
  std::int64_t keys;  // from the first on
  bool causal;
};

class ContextCall {
 public:
  explicit ContextCall(const OperationCall& call)
      : call_(call),
        kernels_(call.kernels().variants()),
        ring_(call.shape.cp / call.shape.cp_exchange),
        place_(call.groups.coordinate(Axis::kCp) / call.shape.cp_exchange) {}

  bool run(const Attention& attention) {
    if (!attention.ring_step && !attention.piece) return false;
    const bool gathered = static_cast<bool>(attention.piece);
    // A step of a ring has all queries, or all keys.
    const std::int64_t rows = gathered ? 2 * attention.query_length
                                       : std::max(attention.query_length, attention.key_length);
    const Meeting meeting =
        gathered ? piece(attention.piece, rows) : ring_step(attention.ring_step, rows);
    for (std::int64_t b = 0; b < attention.batch; ++b) attend(attention, meeting, rows, b);
    return true;
  }

  bool run(const PartialMerge& merge) {
    const ContextSizes& sizes = merge.sizes;
    const Meeting meeting =
        merge.piece ? piece(merge.piece, sizes.rows) : ring_step(merge.ring_step, sizes.rows);
    switch (merge.of) {
      case ContextTensor::kContext:
        merge_contexts(merge, meeting.queries);
        return true;
      case ContextTensor::kQuery:
        merge_queries(merge, meeting.queries);
        return true;
      case ContextTensor::kKeyValue:
        merge_keys(merge, meeting.keys);
        return true;
      default:
        STEPCAST_ASSERT(false, "no other results come in parts");
    }
    return false;
  }

  bool run(const ContextCopy& copy) {
    switch (copy.move) {
      case ContextMove::kPack:
        pack(copy);
        break;
      case ContextMove::kNarrow:
        narrow(copy);
        break;
      case ContextMove::kSplitHeads:
        exchange_heads(copy, true);
        break;
      case ContextMove::kJoinHeads:
        exchange_heads(copy, false);
        break;
      case ContextMove::kJoinTokens:
        exchange_tokens(copy, true);
        break;
      case ContextMove::kSplitTokens:
        exchange_tokens(copy, false);
        break;
    }
    return true;
  }

 private:
  Meeting ring_step(OptionalCount number, std::int64_t rows) const {
    const std::int64_t step = number.value - 1, half = rows / 2;
    if (step == 0) return {{0, rows}, rows, true};
    if (step <= place_) return {{0, rows}, half, false};
    return {{half, half}, rows, false};
  }
  Meeting piece(OptionalCount number, std::int64_t rows) const {
    const std::int64_t half = rows / 2, at = number.value == 1 ? place_ : 2 * ring_ - 1 - place_;
    return {{(number.value - 1) * half, half}, (at + 1) * half, true};
  }

  const Buffer& read_buffer(std::size_t i) const { return call_.buffer(call_.operation.reads[i]); }
  const Buffer& write_buffer(std::size_t i) const {
    return call_.buffer(call_.operation.writes[i]);
  }

  // Heads of a tensor that begins the rows which hold it.
  static HeadArray first_heads(Array array, const Buffer& buffer, std::int64_t tokens) {
    return {array, buffer.elements / tokens};
  }
  static HeadArray from_row(const HeadArray& heads, std::int64_t row) {
    return {heads.array.from(row * heads.stride), heads.stride};
  }

  struct KeyValue {
    HeadArray key, value;
  };
  // Keys of so many tokens, and the values behind them.
  static KeyValue keys_then_values(Array array, std::int64_t tokens, std::int64_t key_width,
                                   std::int64_t value_width) {
    return {{array, key_width}, {array.from(tokens * key_width), value_width}};
  }

  void attend(const Attention& a, const Meeting& meeting, std::int64_t rows, std::int64_t b) {
    AttentionShape shape{1,          a.heads,        a.kv_heads,       meeting.queries.count,
                         a.head_dim, meeting.causal, a.value_dim.value};
    shape.keys = meeting.keys;
    const std::int64_t key_rows = a.piece ? rows * ring_ : rows;
    const std::int64_t width = a.heads * shape.value_width();
    const std::int64_t keys = a.kv_heads * a.head_dim, values = a.kv_heads * shape.value_width();
    const std::int64_t row = b * rows + meeting.queries.first, tokens = a.batch * rows;
    const auto of_queries = [&](Array array, const Buffer& buffer) {
      return from_row(first_heads(array, buffer, tokens), row);
    };
    const auto of_keys = [&](Array array) {
      const KeyValue all = keys_then_values(array, a.batch * key_rows, keys, values);
      return KeyValue{from_row(all.key, b * key_rows), from_row(all.value, b * key_rows)};
    };
    const HeadArray query = of_queries(call_.read(0), read_buffer(0));
    const KeyValue read = of_keys(call_.read(1));
    // The statistics of a piece lie together; those of a step, before they are merged, too.
    const std::int64_t of_piece =
        a.piece ? ((a.piece.value - 1) * a.batch + b) * a.heads * meeting.queries.count
                : b * a.heads * rows;
    if (!a.backward) {
      call_.kernels().attention({.shape = shape,
                                 .query = query,
                                 .key = read.key,
                                 .value = read.value,
                                 .context = from_row({call_.write(0), width}, row),
                                 .log_sum_exp = call_.write(1).from(of_piece)});
      return;
    }
    const KeyValue gradient = of_keys(call_.write(1));
    const Array sums = call_.read(3).from(of_piece), workspace = call_.write(2);
    call_.kernels().attention_backward(
        {.shape = shape,
         .query = query,
         .key = read.key,
         .value = read.value,
         .context = from_row({call_.read(2), width}, row),
         .log_sum_exp = a.piece ? sums : sums_of(meeting.queries, rows, a, sums, workspace),
         .context_gradient = from_row({call_.read(4), width}, row),
         .query_gradient = of_queries(call_.write(0), write_buffer(0)),
         .key_gradient = gradient.key,
         .value_gradient = gradient.value,
         .workspace = workspace});
  }

  // Statistics of half of the queries, put side by side. The kernel needs its workspace for as many
  // queries: the rest of it is free.
  Array sums_of(const Rows& queries, std::int64_t rows, const Attention& a, Array sums,
                Array workspace) {
    if (queries.count == rows) return sums;
    const Array apart = workspace.from(queries.count * a.heads * a.head_dim);
    kernels_.spread_rows({.from = {sums.from(queries.first), {0, 0, rows}},
                          .to = {apart, {0, 0, queries.count}},
                          .counts = {1, 1, a.heads},
                          .columns = queries.count});
    return apart;
  }

  void merge_contexts(const PartialMerge& merge, const Rows& queries) {
    const ContextSizes& sizes = merge.sizes;
    const std::int64_t width = sizes.heads * sizes.value_dim;
    kernels_.merge_part({.batch = sizes.batch,
                         .heads = sizes.heads,
                         .width = sizes.value_dim,
                         .rows = queries.count,
                         .all_rows = sizes.rows,
                         .first_row = queries.first,
                         .part = {call_.read(0), width},
                         .part_sums = call_.read(1),
                         .context = {call_.write(0), width},
                         .sums = call_.write(1),
                         .is_first = merge.is_first});
  }

  // Rows of each of the sequences; without a place to come from, zeros.
  void move(const ContextSizes& sizes, std::int64_t all_rows, const Rows& rows, std::int64_t width,
            const HeadArray& from, const HeadArray& to, bool adds) {
    if (rows.count == 0) return;
    const auto of = [&](const HeadArray& heads) -> SpreadRows {
      if (!heads.array) return {};
      return {from_row(heads, rows.first).array, {0, all_rows * heads.stride, heads.stride}};
    };
    kernels_.spread_rows({.from = of(from),
                          .to = of(to),
                          .counts = {1, sizes.batch, rows.count},
                          .columns = width,
                          .adds = adds});
  }

  void merge_queries(const PartialMerge& merge, const Rows& queries) {
    const ContextSizes& sizes = merge.sizes;
    const std::int64_t width = sizes.heads * sizes.key_dim;
    const HeadArray to = first_heads(call_.write(0), write_buffer(0), sizes.tokens());
    const auto add = [&](const Rows& rows, const HeadArray& from) {
      move(sizes, sizes.rows, rows, width, from, to, !merge.is_first);
    };
    if (merge.is_first) add({0, queries.first}, {});
    add(queries, {call_.read(0), width});
  }

  void merge_keys(const PartialMerge& merge, std::int64_t keys) {
    const ContextSizes& sizes = merge.sizes;
    const std::int64_t rows = merge.piece ? sizes.rows * ring_ : sizes.rows;
    const std::int64_t tokens = sizes.batch * rows;
    const std::int64_t key_width = sizes.kv_heads * sizes.key_dim,
                       value_width = sizes.kv_heads * sizes.value_dim;
    const KeyValue to = written_keys(tokens, key_width, value_width);
    const auto add = [&](const Rows& of, const KeyValue& from, bool adds) {
      move(sizes, rows, of, key_width, from.key, to.key, adds);
      move(sizes, rows, of, value_width, from.value, to.value, adds);
    };
    const bool arrives = call_.operation.reads.size() > 1;
    if (arrives) {
      add({0, rows}, keys_then_values(call_.read(1), tokens, key_width, value_width), false);
    } else if (merge.is_first) {
      add({keys, rows - keys}, {}, false);
    }
    add({0, keys}, keys_then_values(call_.read(0), tokens, key_width, value_width),
        arrives || !merge.is_first);
  }

  // In two buffers, in one behind each other, or in the packed rows of queries, keys and values.
  KeyValue written_keys(std::int64_t tokens, std::int64_t key_width, std::int64_t value_width) {
    if (call_.operation.writes.size() > 1) {
      return {{call_.write(0), key_width}, {call_.write(1), value_width}};
    }
    const std::int64_t stride = write_buffer(0).elements / tokens;
    if (stride == key_width + value_width) {
      return keys_then_values(call_.write(0), tokens, key_width, value_width);
    }
    const std::int64_t key = stride - key_width - value_width;
    return {{call_.write(0).from(key), stride}, {call_.write(0).from(key + key_width), stride}};
  }

  // Heads of the model's keys that share what a ring has for each of them.
  static std::int64_t copies_of(const ContextCopy& copy) {
    return copy.copies ? copy.copies.value : 1;
  }

  void pack(const ContextCopy& copy) {
    const ContextSizes& sizes = copy.sizes;
    const std::int64_t copies = copies_of(copy), kv_heads = sizes.kv_heads / copies;
    const HeadSpec spec{sizes.tokens(), sizes.heads * sizes.key_dim, kv_heads * sizes.key_dim,
                        kv_heads * sizes.value_dim, copy.type};
    const KeyValue to =
        keys_then_values(call_.write(0), sizes.tokens(), sizes.kv_heads * sizes.key_dim,
                         sizes.kv_heads * sizes.value_dim);
    const auto repeat = [&](const HeadArray& from, const HeadArray& heads, std::int64_t dim) {
      kernels_.spread_rows({.from = {from.array, {dim, 0, from.stride}},
                            .to = {heads.array, {copies * dim, dim, heads.stride}},
                            .counts = {kv_heads, copies, sizes.tokens()},
                            .columns = dim});
    };
    repeat(heads_in(call_, call_.operation.reads[0], HeadSide::kKey, spec), to.key, sizes.key_dim);
    repeat(heads_in(call_, call_.operation.reads[1], HeadSide::kValue, spec), to.value,
           sizes.value_dim);
  }

  void narrow(const ContextCopy& copy) {
    const ContextSizes& sizes = copy.sizes;
    const std::int64_t tokens = sizes.tokens(), copies = copies_of(copy);
    if (copy.of != ContextTensor::kKeyValue) {
      const bool query = copy.of == ContextTensor::kQuery;
      const std::int64_t width = sizes.heads * (query ? sizes.key_dim : sizes.value_dim);
      move(sizes, sizes.rows, {0, sizes.rows}, width, {call_.read(0), width},
           first_heads(call_.write(0), write_buffer(0), tokens), false);
      return;
    }
    const std::int64_t kv_heads = sizes.kv_heads / copies;
    const KeyValue from = keys_then_values(call_.read(0), tokens, sizes.kv_heads * sizes.key_dim,
                                           sizes.kv_heads * sizes.value_dim);
    const KeyValue to = written_keys(tokens, kv_heads * sizes.key_dim, kv_heads * sizes.value_dim);
    const auto add_up = [&](const HeadArray& wide, const HeadArray& heads, std::int64_t dim) {
      kernels_.spread_rows({.from = {wide.array, {copies * dim, 0, wide.stride}},
                            .to = {heads.array, {dim, 0, heads.stride}},
                            .counts = {kv_heads, 1, tokens},
                            .columns = dim,
                            .terms = copies,
                            .term_stride = dim});
    };
    add_up(from.key, to.key, sizes.key_dim);
    add_up(from.value, to.value, sizes.value_dim);
  }

  static HeadSide side_of(ContextTensor of) {
    switch (of) {
      case ContextTensor::kKey:
        return HeadSide::kKey;
      case ContextTensor::kValue:
        return HeadSide::kValue;
      default:
        return HeadSide::kQuery;
    }
  }

  // Elements of one token's heads, of this rank's share of them.
  static std::int64_t width_of(const ContextSizes& sizes, ContextTensor of) {
    switch (of) {
      case ContextTensor::kQuery:
        return sizes.heads * sizes.key_dim;
      case ContextTensor::kContext:
        return sizes.heads * sizes.value_dim;
      case ContextTensor::kKey:
        return sizes.kv_heads * sizes.key_dim;
      default:
        return sizes.kv_heads * sizes.value_dim;
    }
  }

  // Between rows of all heads and messages that have a rank's share of them each.
  void exchange_heads(const ContextCopy& copy, bool leaving) {
    const ContextSizes& sizes = copy.sizes;
    const std::int64_t width = width_of(sizes, copy.of), tokens = sizes.tokens();
    const auto whole = [&](ContextTensor of) { return sizes.ranks * width_of(sizes, of); };
    const HeadSpec spec{tokens, whole(ContextTensor::kQuery), whole(ContextTensor::kKey),
                        whole(ContextTensor::kValue), copy.type};
    const BufferId id = leaving ? call_.operation.reads[0] : call_.operation.writes[0];
    const HeadArray heads = copy.of == ContextTensor::kContext
                                ? HeadArray{call_.data(id), whole(copy.of)}
                                : heads_in(call_, id, side_of(copy.of), spec);
    const SpreadRows rows{heads.array, {width, 0, heads.stride}};
    const SpreadRows message{leaving ? call_.write(0) : call_.read(0), {tokens * width, 0, width}};
    kernels_.spread_rows({.from = leaving ? rows : message,
                          .to = leaving ? message : rows,
                          .counts = {sizes.ranks, 1, tokens},
                          .columns = width});
  }

  // Between messages that have the tokens of a rank each and all tokens in their order.
  void exchange_tokens(const ContextCopy& copy, bool joins) {
    const ContextSizes& sizes = copy.sizes;
    if (copy.of != ContextTensor::kKeyValue) {
      return exchange_tokens(sizes, width_of(sizes, copy.of), call_.read(0), call_.write(0), joins);
    }
    const std::int64_t keys = width_of(sizes, ContextTensor::kKey);
    const std::int64_t behind = sizes.ranks * sizes.tokens() * keys;
    exchange_tokens(sizes, keys, call_.read(0), call_.write(0), joins);
    exchange_tokens(sizes, width_of(sizes, ContextTensor::kValue), call_.read(0).from(behind),
                    call_.write(0).from(behind), joins);
  }
  void exchange_tokens(const ContextSizes& sizes, std::int64_t width, Array from, Array to,
                       bool joins) {
    const std::int64_t half = sizes.rows / 2 * width, of_rank = sizes.rows * width;
    for (const bool second : {false, true}) {
      // The first halves follow each other by rank, the second ones against it.
      const std::int64_t begin = second ? (2 * sizes.ranks - 1) * half : 0;
      const SpreadRows message{(joins ? from : to).from(second ? half : 0),
                               {sizes.batch * of_rank, of_rank, width}};
      const SpreadRows ordered{(joins ? to : from).from(begin),
                               {second ? -half : half, sizes.ranks * of_rank, width}};
      kernels_.spread_rows({.from = joins ? message : ordered,
                            .to = joins ? ordered : message,
                            .counts = {sizes.ranks, sizes.batch, sizes.rows / 2},
                            .columns = width});
    }
  }

  const OperationCall& call_;
  VariantKernels& kernels_;
  std::int64_t ring_, place_;
};

}  // namespace

bool run_on_context(const OperationCall& call) { return run_by_kind<ContextCall>(call); }

}  // namespace stepcast
