// SPDX-License-Identifier: Apache-2.0
// A kernel must know this of its arrays besides where they lie: sizes, kinds and the constants of
// the formulas. The kernels of every kind of device take these; none of them belongs to one.
#pragma once

#include <cmath>
#include <cstdint>

namespace stepcast {

// The formulas are beside the functions of the CPU (kernels/cpu/norm.h, activation.h, rotary.h).
enum class NormKind { kLayer, kRms };
inline constexpr double kNormEpsilon = 1e-5;

enum class ActivationKind { kGelu, kSwiglu };

inline constexpr double kRotaryBase = 10000;

// Positions in a sequence of the tokens that a rank has of it: those of its first half count up
// from `first`, the others from `second`. By default it has all tokens in their order.
struct SequencePlaces {
  std::int64_t half = 0, first = 0, second = 0;

  std::int64_t at(std::int64_t token) const {
    return token < half ? first + token : second + token - half;
  }
};

// Grouped queries: query head h reads key-value head h / (heads/kv_heads).
struct AttentionShape {
  std::int64_t batch;
  std::int64_t heads, kv_heads;
  std::int64_t sequence;
  std::int64_t head_dim;
  bool causal = true;
  std::int64_t value_dim = 0;  // of values and contexts; 0: head_dim
  // With a causal mask, how many tokens a query sees, itself the last; or the size of the chunks of
  // the sequence, of which it sees its own. 0: it sees all before it.
  std::int64_t window = 0, chunk = 0;
  // A sequence may have more keys or fewer than queries: with a causal mask no fewer, and then the
  // last query sees the last key. 0: as many.
  std::int64_t keys = 0;

  std::int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
  std::int64_t key_rows() const { return keys > 0 ? keys : sequence; }
  // The key that a query sees last is so far behind it. Without a mask: 0.
  std::int64_t offset() const { return causal ? key_rows() - sequence : 0; }
  // Rows of keys and values, as rows of queries.
  AttentionShape of_keys() const {
    AttentionShape out = *this;
    out.sequence = key_rows();
    return out;
  }
  // Returns the first of the keys that a query sees, whose last one is `last`.
  std::int64_t first_key(std::int64_t last) const {
    if (window > 0) return last < window ? 0 : last - window + 1;
    return chunk > 0 ? last / chunk * chunk : 0;
  }
  // Values as wide as keys, and nothing hidden but what comes later.
  bool is_plain() const { return value_width() == head_dim && window == 0 && chunk == 0; }
  bool is_empty() const { return batch * heads * sequence * head_dim == 0; }
};

// Scores are multiplied by it before the softmax.
template <typename T>
T score_scale(const AttentionShape& shape) {
  return T(1 / std::sqrt(static_cast<double>(shape.head_dim)));
}

// Latent attention (kernels/cpu/latent_rotary.h).
struct LatentShape {
  std::int64_t batch, sequence, heads;
  std::int64_t plain, rotary, value;  // elements of a head
  SequencePlaces places = {};

  std::int64_t tokens() const { return batch * sequence; }
  std::int64_t key_width() const { return plain + rotary; }
  std::int64_t up_width() const { return plain + value; }
};

// The router of a mixture of experts (kernels/cpu/experts.h).
struct RouterShape {
  std::int64_t tokens, experts, top_k;
  // Rows that every expert takes of these tokens, the first ones; 0: all that chose it.
  std::int64_t capacity = 0;
};

// A vocabulary-parallel table holds rows [first, first + rows) of the vocabulary.
struct TableSlice {
  std::int64_t first, rows, width;
};

// The logits of a slice of the vocabulary.
struct LogitSlice {
  std::int64_t first;    // vocabulary index of column 0
  std::int64_t columns;  // of a row in memory
  std::int64_t valid;    // columns that stand for a token
};

}  // namespace stepcast
