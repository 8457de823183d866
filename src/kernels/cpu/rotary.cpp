// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/rotary.h"

#include <cmath>
#include <vector>

#include "core/assert.h"
#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

// Angles of a position add up from those of its multiple of kStride and of the rest, so that a call
// computes sines for sequence/kStride + kStride positions instead of all.
constexpr std::int64_t kStride = 64;

class Turns {
 public:
  Turns(std::int64_t half, std::int64_t sequence)
      : half_(half), coarse_(count(sequence / kStride + 1)), fine_(count(kStride)) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency =
          std::pow(kRotaryBase, -static_cast<double>(i) / static_cast<double>(half));
      fill(coarse_, i, frequency * static_cast<double>(kStride));
      fill(fine_, i, frequency);
    }
  }

  template <typename T>
  void at(std::int64_t position, bool backward, T* cosine, T* sine) const {
    const Turn* coarse = coarse_.data() + position / kStride * half_;
    const Turn* fine = fine_.data() + position % kStride * half_;
    const double direction = backward ? -1 : 1;
    for (std::int64_t i = 0; i < half_; ++i) {
      const Turn a = coarse[i];
      const Turn b = fine[i];
      cosine[i] = T(a.cosine * b.cosine - a.sine * b.sine);
      sine[i] = T(direction * (a.sine * b.cosine + a.cosine * b.sine));
    }
  }

 private:
  struct Turn {
    double cosine, sine;
  };
  std::size_t count(std::int64_t rows) const { return static_cast<std::size_t>(rows * half_); }
  void fill(std::vector<Turn>& rows, std::int64_t i, double angle) const {
    double row = 0;
    for (auto at = static_cast<std::size_t>(i); at < rows.size();
         at += static_cast<std::size_t>(half_), ++row) {
      rows[at] = {std::cos(row * angle), std::sin(row * angle)};
    }
  }

  std::int64_t half_;
  std::vector<Turn> coarse_;
  std::vector<Turn> fine_;
};

template <typename T>
STEPCAST_INLINE void turn_head(const T* in, T* out, const T* cosine, const T* sine,
                               std::int64_t half) {
  for_packs<T>(half, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> first = load(in + i, lanes);
    const Pack<T> second = load(in + half + i, lanes);
    const Pack<T> c = load(cosine + i, lanes);
    const Pack<T> s = load(sine + i, lanes);
    store<T>(first * c - second * s, out + i, lanes);
    store<T>(second * c + first * s, out + half + i, lanes);
  });
}

}  // namespace

template <typename T>
void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t heads, std::int64_t head_dim,
            Heads<const T> in, Heads<T> out, bool backward, const SequencePlaces& places) {
  STEPCAST_ASSERT(head_dim % 2 == 0, "halves of a head turn together");
  const std::int64_t half = head_dim / 2;
  if (sequence == 0) return;
  const Turns turns(half, places.at(sequence - 1) + 1);
  std::vector<T> cosine(static_cast<std::size_t>(half));
  std::vector<T> sine(static_cast<std::size_t>(half));
  for (std::int64_t position = 0; position < sequence; ++position) {
    turns.at(places.at(position), backward, cosine.data(), sine.data());
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t row = b * sequence + position;
      const T* from = in.data + row * in.stride;
      T* to = out.data + row * out.stride;
      run_widest([&]() STEPCAST_BODY {
        for (std::int64_t h = 0; h < heads; ++h, from += head_dim, to += head_dim) {
          turn_head(from, to, cosine.data(), sine.data(), half);
        }
      });
    }
  }
}

#define STEPCAST_INSTANTIATE(T)                                                                \
  template void rotary(std::int64_t, std::int64_t, std::int64_t, std::int64_t, Heads<const T>, \
                       Heads<T>, bool, const SequencePlaces&);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
