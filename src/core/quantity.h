// SPDX-License-Identifier: Apache-2.0
// Strong units: a double that knows its dimension. Multiplying and dividing derive the dimension of
// the result, a ratio of equal dimensions is a plain double, and mixing dimensions does not
// compile. Sizes of allocations are exact integers (ByteCount); the engine's clock is sim/time.h.
#pragma once

#include <compare>
#include <cstdint>

namespace stepcast {

// Exponents of the base dimensions: seconds, bytes, floating-point operations, dollars, joules.
struct Dimension {
  int time = 0;
  int data = 0;
  int work = 0;
  int money = 0;
  int energy = 0;
  constexpr bool operator==(const Dimension&) const = default;
};

constexpr Dimension operator+(Dimension a, Dimension b) {
  return {a.time + b.time, a.data + b.data, a.work + b.work, a.money + b.money,
          a.energy + b.energy};
}
constexpr Dimension operator-(Dimension a, Dimension b) {
  return {a.time - b.time, a.data - b.data, a.work - b.work, a.money - b.money,
          a.energy - b.energy};
}

template <Dimension D>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(double value) : value_(value) {}
  constexpr double value() const { return value_; }  // in base units

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, double b) { return a *= b; }
  friend constexpr Quantity operator*(double a, Quantity b) { return b *= a; }
  friend constexpr Quantity operator/(Quantity a, double b) { return Quantity(a.value_ / b); }

 private:
  double value_ = 0;
};

template <Dimension A, Dimension B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
  if constexpr (A + B == Dimension{}) {
    return a.value() * b.value();
  } else {
    return Quantity<A + B>(a.value() * b.value());
  }
}

template <Dimension A, Dimension B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
  if constexpr (A == B) {
    return a.value() / b.value();
  } else {
    return Quantity<A - B>(a.value() / b.value());
  }
}

using Seconds = Quantity<Dimension{.time = 1}>;
using Bytes = Quantity<Dimension{.data = 1}>;
using BytesPerSecond = Quantity<Dimension{.time = -1, .data = 1}>;
using Flops = Quantity<Dimension{.work = 1}>;
using FlopsPerSecond = Quantity<Dimension{.time = -1, .work = 1}>;
using Dollars = Quantity<Dimension{.money = 1}>;
using DollarsPerSecond = Quantity<Dimension{.time = -1, .money = 1}>;
using Joules = Quantity<Dimension{.energy = 1}>;
using Watts = Quantity<Dimension{.time = -1, .energy = 1}>;

using ByteCount = std::int64_t;  // an exact size

constexpr Bytes bytes(ByteCount count) { return Bytes(static_cast<double>(count)); }

namespace literals {
constexpr Seconds operator""_us(long double v) { return Seconds(static_cast<double>(v) * 1e-6); }
constexpr Seconds operator""_ms(long double v) { return Seconds(static_cast<double>(v) * 1e-3); }
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Bytes operator""_KiB(unsigned long long v) {
  return Bytes(static_cast<double>(v) * 1024);
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes(static_cast<double>(v) * 1048576);
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes(static_cast<double>(v) * 1073741824);
}
constexpr Bytes operator""_GB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1e9); }
constexpr BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
constexpr BytesPerSecond operator""_Gbps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9 / 8);
}
constexpr FlopsPerSecond operator""_TFLOPS(unsigned long long v) {
  return FlopsPerSecond(static_cast<double>(v) * 1e12);
}
}  // namespace literals

}  // namespace stepcast
