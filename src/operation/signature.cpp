// SPDX-License-Identifier: Apache-2.0
#include "operation/signature.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

namespace stepcast {
namespace {

// Every field of a work: which of several it is by its name, a number or a type behind its key, a
// condition by its key where it holds.
class Text {
 public:
  explicit Text(std::string family) : text_(std::move(family)) {}

  template <class Fields>
  void add_all(const Fields& holder) {
    std::apply([&](const auto&... field) { (add(field.first, holder.*field.second), ...); },
               Fields::fields());
  }
  std::string take() { return std::move(text_); }

 private:
  template <class Value>
  void add(const char* key, const Value& value) {
    if constexpr (std::is_same_v<Value, KernelSize>) {
      text_ +=
          fmt::format(" elements {} width {} bytes {}", value.elements, value.width, value.bytes);
    } else if constexpr (std::is_same_v<Value, OptionalCount>) {
      if (value) text_ += fmt::format(" {} {}", key, value.value);
    } else if constexpr (std::is_same_v<Value, AxisGroup>) {
      text_ += fmt::format(" {}", name_of(value));
    } else if constexpr (std::is_class_v<Value>) {
      add_all(value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      if (value) text_ += fmt::format(" {}", key);
    } else if constexpr (std::is_same_v<Value, DataType>) {
      text_ += fmt::format(" {} {}", key, name_of(value));
    } else if constexpr (std::is_enum_v<Value>) {
      text_ += fmt::format(" {}", name_of(value));
    } else {
      text_ += fmt::format(" {} {}", key, value);
    }
  }

  std::string text_;
};

template <class Work>
std::string text_of(const Work& work) {
  Text text(Work::kFamily);
  text.add_all(work);
  return text.take();
}

std::string text_of(const Gemm& gemm) {
  return fmt::format("gemm {} {}x{}x{}x{} {} {}{}{}", name_of(gemm.role), gemm.batch, gemm.m,
                     gemm.n, gemm.k, name_of(gemm.input), name_of(gemm.output),
                     gemm.accumulate ? " accumulate" : "", gemm.bias ? " bias" : "");
}

std::string text_of(const Attention& a) {
  const auto text = [](const char* key, OptionalCount count) {
    return count ? fmt::format(" {} {}", key, count.value) : "";
  };
  return fmt::format("attention {} {}x{}x{}x{}x{}x{} {} {}", a.backward ? "backward" : "forward",
                     a.batch, a.heads, a.kv_heads, a.query_length, a.key_length, a.head_dim,
                     a.causal ? "causal" : "full", name_of(a.type)) +
         text("value_dim", a.value_dim) + text("window", a.window) + text("chunk", a.chunk) +
         text("sinks", a.sinks);
}

}  // namespace

std::string signature(const Operation& operation) {
  return std::visit([](const auto& work) { return text_of(work); }, operation.work);
}

bool is_signature_of_collective(std::string_view signature) {
  return signature.substr(0, signature.find(' ')) == Collective::kFamily;
}

}  // namespace stepcast
