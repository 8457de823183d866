// SPDX-License-Identifier: Apache-2.0
// Parts of the C++20 library that stepcast uses and libc++ 13 of Debian's emscripten lacks. The
// compiler includes this file before every other one of a web build (cmake/Web.cmake). A newer
// libc++ has them all, and the file can then go.
#pragma once

#include <version>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 15000
#pragma clang system_header
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <compare>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

_LIBCPP_BEGIN_NAMESPACE_STD

// -- three-way comparison of strings, vectors, arrays, optionals and so on -----------------------
namespace stepcast_stand_in {

template <class A, class B>
constexpr auto compared(const A& a, const B& b) {
  if constexpr (requires { a <=> b; }) {
    return a <=> b;
  } else {
    return a < b ? weak_ordering::less : b < a ? weak_ordering::greater : weak_ordering::equivalent;
  }
}
template <class T>
using Order = decltype(compared(declval<const T&>(), declval<const T&>()));

template <class Range>
constexpr Order<typename Range::value_type> compared_in_order(const Range& a, const Range& b) {
  auto left = a.begin();
  auto right = b.begin();
  for (; left != a.end() && right != b.end(); ++left, ++right) {
    if (const auto order = compared(*left, *right); order != 0) return order;
  }
  return left != a.end()    ? Order<typename Range::value_type>::greater
         : right != b.end() ? Order<typename Range::value_type>::less
                            : Order<typename Range::value_type>::equivalent;
}

}  // namespace stepcast_stand_in

template <class Traits, class Allocator>
strong_ordering operator<=>(const basic_string<char, Traits, Allocator>& a,
                            const basic_string<char, Traits, Allocator>& b) {
  const int order = a.compare(b);
  return order < 0   ? strong_ordering::less
         : order > 0 ? strong_ordering::greater
                     : strong_ordering::equal;
}
template <class T, class Allocator>
constexpr auto operator<=>(const vector<T, Allocator>& a, const vector<T, Allocator>& b)
    -> stepcast_stand_in::Order<T> {
  return stepcast_stand_in::compared_in_order(a, b);
}
template <class T>
constexpr auto operator<=>(const optional<T>& a, const optional<T>& b)
    -> stepcast_stand_in::Order<T> {
  if (a && b) return stepcast_stand_in::compared(*a, *b);
  return a   ? stepcast_stand_in::Order<T>::greater
         : b ? stepcast_stand_in::Order<T>::less
             : stepcast_stand_in::Order<T>::equivalent;
}
template <class A, class B>
constexpr auto operator<=>(const pair<A, B>& a, const pair<A, B>& b)
    -> common_comparison_category_t<stepcast_stand_in::Order<A>, stepcast_stand_in::Order<B>> {
  if (const auto order = stepcast_stand_in::compared(a.first, b.first); order != 0) return order;
  return stepcast_stand_in::compared(a.second, b.second);
}

template <class T, size_t size>
constexpr auto operator<=>(const array<T, size>& a, const array<T, size>& b)
    -> stepcast_stand_in::Order<T> {
  return stepcast_stand_in::compared_in_order(a, b);
}
template <class Key, class Value, class Less, class Allocator>
auto operator<=>(const map<Key, Value, Less, Allocator>& a,
                 const map<Key, Value, Less, Allocator>& b) {
  return stepcast_stand_in::compared_in_order(a, b);
}

// -- the bits of a value as another --------------------------------------------------------------
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

// -- numbers with a fraction ---------------------------------------------------------------------
// The longest number that begins the text, without blanks, sign + or base prefix before it.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const auto digits = [last](const char*& at) {
    const char* begin = at;
    while (at != last && *at >= '0' && *at <= '9') ++at;
    return at - begin;
  };
  const char* at = first;
  if (at != last && *at == '-') ++at;
  const char* whole = at;
  auto count = digits(at);
  if (at != last && *at == '.') {
    const char* dot = at++;
    const auto behind = digits(at);
    if (count + behind == 0) at = dot;
    count += behind;
  }
  if (count == 0) {
    for (const char* word : {"infinity", "inf", "nan"}) {
      const auto size = static_cast<ptrdiff_t>(strlen(word));
      if (last - whole >= size && strncasecmp(whole, word, static_cast<size_t>(size)) == 0) {
        value = strtod(string(first, whole + size).c_str(), nullptr);
        return {whole + size, errc{}};
      }
    }
    return {first, errc::invalid_argument};
  }
  if (at != last && (*at == 'e' || *at == 'E')) {
    const char* exponent = at + 1;
    if (exponent != last && (*exponent == '-' || *exponent == '+')) ++exponent;
    if (digits(exponent) > 0 && exponent[-1] >= '0' && exponent[-1] <= '9') at = exponent;
  }
  const int before = errno;
  errno = 0;
  const double read = strtod(string(first, at).c_str(), nullptr);
  const bool out_of_range = errno == ERANGE;
  errno = before;
  if (out_of_range) return {at, errc::result_out_of_range};
  value = read;
  return {at, errc{}};
}

// -- threads -------------------------------------------------------------------------------------
// There are none: what a thread is to do is done when it begins.
class jthread {
 public:
  template <class Work, class... Arguments>
  explicit jthread(Work&& work, Arguments&&... arguments) {
    std::invoke(std::forward<Work>(work), std::forward<Arguments>(arguments)...);
  }
};

// -- algorithms of ranges ------------------------------------------------------------------------
// Each hands the iterators of its range, and its projection, to the algorithm of the same name.
namespace ranges {

struct identity_stand_in {
  template <class T>
  constexpr T&& operator()(T&& value) const {
    return std::forward<T>(value);
  }
};
struct less_stand_in {
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return a < b;
  }
};
struct equal_stand_in {
  template <class A, class B>
  constexpr bool operator()(const A& a, const B& b) const {
    return a == b;
  }
};

template <class Function, class Projection>
constexpr auto projected(Function& function, Projection& projection) {
  return [&](auto&& value) -> bool {
    return std::invoke(function, std::invoke(projection, std::forward<decltype(value)>(value)));
  };
}
template <class Function, class Left, class Right>
constexpr auto projected_two(Function& function, Left& left, Right& right) {
  return [&](auto&& a, auto&& b) -> bool {
    return std::invoke(function, std::invoke(left, std::forward<decltype(a)>(a)),
                       std::invoke(right, std::forward<decltype(b)>(b)));
  };
}

#define STEPCAST_RANGE_PREDICATE(NAME)                                                      \
  template <class Range, class Predicate, class Projection = identity_stand_in>             \
  constexpr auto NAME(Range&& range, Predicate predicate, Projection projection = {}) {     \
    return std::NAME(std::begin(range), std::end(range), projected(predicate, projection)); \
  }
STEPCAST_RANGE_PREDICATE(all_of)
STEPCAST_RANGE_PREDICATE(any_of)
STEPCAST_RANGE_PREDICATE(none_of)
STEPCAST_RANGE_PREDICATE(count_if)
STEPCAST_RANGE_PREDICATE(find_if)
#undef STEPCAST_RANGE_PREDICATE

#define STEPCAST_RANGE_ORDER(NAME)                                                          \
  template <class Range, class Order = less_stand_in, class Projection = identity_stand_in> \
  constexpr auto NAME(Range&& range, Order order = {}, Projection projection = {}) {        \
    return std::NAME(std::begin(range), std::end(range),                                    \
                     projected_two(order, projection, projection));                         \
  }
STEPCAST_RANGE_ORDER(max_element)
STEPCAST_RANGE_ORDER(min_element)
STEPCAST_RANGE_ORDER(is_sorted)
#undef STEPCAST_RANGE_ORDER

#define STEPCAST_RANGE_SORT(NAME)                                                                \
  template <class Range, class Order = less_stand_in, class Projection = identity_stand_in>      \
  constexpr auto NAME(Range&& range, Order order = {}, Projection projection = {}) {             \
    std::NAME(std::begin(range), std::end(range), projected_two(order, projection, projection)); \
    return std::end(range);                                                                      \
  }
STEPCAST_RANGE_SORT(sort)
STEPCAST_RANGE_SORT(stable_sort)
#undef STEPCAST_RANGE_SORT

// Two neighbours for which the relation holds, as a rule that they are equal.
template <class Range, class Relation = equal_stand_in, class Projection = identity_stand_in>
constexpr auto adjacent_find(Range&& range, Relation relation = {}, Projection projection = {}) {
  return std::adjacent_find(std::begin(range), std::end(range),
                            projected_two(relation, projection, projection));
}
template <class Range, class Others, class Relation = equal_stand_in>
constexpr bool equal(Range&& range, Others&& others, Relation relation = {}) {
  return std::equal(std::begin(range), std::end(range), std::begin(others), std::end(others),
                    relation);
}

template <class Range, class Value, class Projection = identity_stand_in>
constexpr auto find(Range&& range, const Value& value, Projection projection = {}) {
  return std::find_if(std::begin(range), std::end(range), [&](auto&& one) -> bool {
    return std::invoke(projection, std::forward<decltype(one)>(one)) == value;
  });
}
template <class Range, class Value, class Projection = identity_stand_in>
constexpr auto count(Range&& range, const Value& value, Projection projection = {}) {
  return std::count_if(std::begin(range), std::end(range), [&](auto&& one) -> bool {
    return std::invoke(projection, std::forward<decltype(one)>(one)) == value;
  });
}
template <class Range, class Others>
constexpr auto find_first_of(Range&& range, Others&& others) {
  return std::find_first_of(std::begin(range), std::end(range), std::begin(others),
                            std::end(others));
}
template <class Range, class Others>
constexpr bool includes(Range&& range, Others&& others) {
  return std::includes(std::begin(range), std::end(range), std::begin(others), std::end(others));
}

// A projected value beside the one that is looked for.
template <class Range, class Value, class Order = less_stand_in,
          class Projection = identity_stand_in>
constexpr auto lower_bound(Range&& range, const Value& value, Order order = {},
                           Projection projection = {}) {
  return std::lower_bound(std::begin(range), std::end(range), value,
                          [&](auto&& one, const Value& other) -> bool {
                            return std::invoke(order, std::invoke(projection, one), other);
                          });
}
template <class Range, class Value, class Order = less_stand_in,
          class Projection = identity_stand_in>
constexpr auto upper_bound(Range&& range, const Value& value, Order order = {},
                           Projection projection = {}) {
  return std::upper_bound(std::begin(range), std::end(range), value,
                          [&](const Value& other, auto&& one) -> bool {
                            return std::invoke(order, other, std::invoke(projection, one));
                          });
}

template <class Value>
struct MinMax {
  Value min, max;
};
template <class Range, class Order = less_stand_in, class Projection = identity_stand_in>
constexpr auto minmax(Range&& range, Order order = {}, Projection projection = {}) {
  const auto [least, most] = std::minmax_element(std::begin(range), std::end(range),
                                                 projected_two(order, projection, projection));
  return MinMax<decay_t<decltype(*least)>>{*least, *most};
}
template <class Range, class Order = less_stand_in>
constexpr auto max(Range&& range, Order order = {}) {
  return *std::max_element(std::begin(range), std::end(range), order);
}

template <class Range, class Out>
constexpr Out copy(Range&& range, Out out) {
  return std::copy(std::begin(range), std::end(range), out);
}
template <class Range, class Out, class Predicate>
constexpr Out copy_if(Range&& range, Out out, Predicate predicate) {
  return std::copy_if(std::begin(range), std::end(range), out, predicate);
}
template <class Range, class Out>
constexpr Out move(Range&& range, Out out) {
  return std::move(std::begin(range), std::end(range), out);
}
template <class Range, class Out, class Change>
constexpr Out transform(Range&& range, Out out, Change change) {
  for (auto&& one : range) *out++ = std::invoke(change, one);
  return out;
}
template <class Range, class Others, class Out>
constexpr Out merge(Range&& range, Others&& others, Out out) {
  return std::merge(std::begin(range), std::end(range), std::begin(others), std::end(others), out);
}
template <class Range, class Others, class Out>
constexpr Out set_union(Range&& range, Others&& others, Out out) {
  return std::set_union(std::begin(range), std::end(range), std::begin(others), std::end(others),
                        out);
}
template <class Range, class Value>
constexpr void replace(Range&& range, const Value& before, const Value& after) {
  std::replace(std::begin(range), std::end(range), before, after);
}
template <class Range>
constexpr void reverse(Range&& range) {
  std::reverse(std::begin(range), std::end(range));
}

struct Permuted {
  bool found;
};
template <class Range>
constexpr Permuted next_permutation(Range&& range) {
  return {std::next_permutation(std::begin(range), std::end(range))};
}

}  // namespace ranges

_LIBCPP_END_NAMESPACE_STD
#endif
