// SPDX-License-Identifier: Apache-2.0
// The kernel of an operation finds its arrays here: live buffers and weights of a running program
// (execute/live_arrays.h), or scratch memory of a calibration
// (calibrate/measure/scratch_arrays.h). execute/call_kernel.h asks for them by their place in the
// operation, and says how much of what it will touch, for whoever has to make them.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/kernels.h"

namespace stepcast {

struct ArraySpec {
  std::int64_t elements;
  DataType type;
  // A made-up array holds this, where numbers around 0 would be no example of its contents.
  std::optional<float> value = {};
  // A made-up array is one for all calls: each touches a small part of it.
  bool is_table = false;
};

struct GradientPlace {
  Array data;
  bool fresh;  // holds nothing yet: write, do not add
};

// A product reads this: an array as it is, or a copy in fp8 with what its numbers stand for.
struct ProductOperand {
  Array array;
  Fp8Numbers fp8 = {};
};

enum class HeadSide { kQuery, kKey, kValue };

// Heads of queries, keys and values of so many tokens.
struct HeadSpec {
  std::int64_t tokens;
  std::int64_t query, key, value;  // elements of one token
  DataType type;

  std::int64_t width(HeadSide side) const {
    return side == HeadSide::kQuery ? query : side == HeadSide::kKey ? key : value;
  }
  std::int64_t packed() const { return query + key + value; }
  // First column of a side in a packed row.
  std::int64_t begin(HeadSide side) const {
    return side == HeadSide::kQuery ? 0 : side == HeadSide::kKey ? query : query + key;
  }
};

// Rows as they lie in a buffer, which may hold more columns than are asked for.
struct RowSpec {
  std::int64_t rows, width;
  DataType type;
};
struct RowArray {
  Array array;
  std::int64_t stride;  // elements from one row to the next
};

// Which part of the model a rank holds, where a kernel must know.
struct RankPart {
  std::int64_t first_token_row = 0;   // of the table of tokens, and so of the logits
  std::optional<std::int64_t> vocab;  // tokens that there are among them; absent: all
  std::int64_t first_position = 0;    // of its rows in a sequence, as this rank has it
  std::int64_t tensor_place = 0;      // among the ranks that cut matrices
  std::int64_t head_place = 0;        // among the ranks that have exchanged heads for tokens
  std::int64_t head_shares = 1;       // and how many they are
  SequencePlaces places = {};         // of the tokens that it has
  float loss_scale = 1;               // of a token's loss in the step's
  float prediction_scale = 1;         // of a prediction module's loss beside the model's own
};

class KernelArrays {
 public:
  virtual ~KernelArrays() = default;

  virtual Array read(std::size_t i, const ArraySpec& spec) = 0;
  virtual Array write(std::size_t i, const ArraySpec& spec) = 0;
  virtual bool has_write(std::size_t i) const = 0;
  // Whether more is read than so many buffers: chains that are not compiled keep more than a kernel
  // needs, and read it again. No calibration makes it.
  virtual bool reads_more_than(std::size_t count) const = 0;
  // An operation reads heads inside the packed projection, or in a buffer of their own.
  virtual HeadArray read_heads(std::size_t i, HeadSide side, const HeadSpec& spec) = 0;
  // It writes them likewise; all sides begin with the first buffer that it writes.
  virtual HeadArray write_heads(HeadSide side, const HeadSpec& spec) = 0;
  // Made-up rows are as wide as asked for.
  virtual RowArray read_rows(std::size_t i, const RowSpec& spec) = 0;
  virtual RowArray write_rows(std::size_t i, const RowSpec& spec) = 0;

  virtual ProductOperand operand(std::size_t i, const ArraySpec& spec) { return {read(i, spec)}; }
  // The first weight, as a product forward or backward reads it.
  virtual ProductOperand matrix(const ArraySpec& spec, bool) { return {weight(0, spec)}; }
  // In fp8 the matrix backward, and both operands of a weight gradient, are the transposed ones.
  virtual bool has_copies_by_columns() const { return false; }

  virtual Array weight(std::size_t i, const ArraySpec& spec) = 0;
  virtual GradientPlace gradient(std::size_t i, const ArraySpec& spec) = 0;

  // Int64, below `limit`; of prediction modules those that come `ahead` tokens later.
  virtual Array tokens(std::int64_t count, std::int64_t limit, std::int64_t ahead) = 0;
  virtual Array targets(std::int64_t count, std::int64_t limit, std::int64_t ahead) = 0;

  virtual RankPart part() const { return {}; }
};

}  // namespace stepcast
