// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/needed_grid.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "calibrate/protocol/sweep_grid.h"
#include "operation/signature.h"

namespace stepcast {
namespace {

constexpr std::int64_t kSizeStep = 4;  // from one message to the next
constexpr std::int64_t kRows = 128;    // whole chunks of vector instructions, and heads

Operation bare(const char* name, Phase phase, Operation::Work work) {
  return {name, phase, std::move(work), {}, {}};
}

// Kernels that differ only in sizes; the first one stands for the rest.
struct Family {
  const Operation* first;
  std::vector<SweepShape> shapes;
};

// The key is everything but the sizes, as one line of text: such a map is in one order everywhere.
using Families = std::map<std::string, Family>;

void add(Families& families, const std::string& key, const Operation& operation, SweepShape shape) {
  families.try_emplace(key, Family{&operation, {}})
      .first->second.shapes.push_back(std::move(shape));
}

// The signature with the sizes that vary set to 1.
std::string key_of(const Operation& operation, Operation::Work work) {
  return signature(bare(operation.name, operation.phase, std::move(work)));
}

class Grid {
 public:
  Grid(const NeededMeasurements& needed, const GridOptions& options)
      : needed_(needed), options_(options) {}

  NeededMeasurements make() {
    for (const NeededKernel& kernel : needed_.kernels) {
      taken_.insert(signature(kernel.operation));
      sort(kernel.operation);
    }
    extend(gemms_, options_.gemms, {1, 8, 8, 8}, gemm_of);
    extend(attentions_, options_.attentions, {1, 1, 16}, attention_of);
    extend(elementwises_, options_.elementwises, {kRows}, elementwise_of);
    add_collectives();
    add_sends();
    return std::move(out_);
  }

 private:
  void sort(const Operation& operation) {
    const Operation::Work& work = operation.work;
    if (const auto gemm = product_of(work)) sort(operation, *gemm);
    if (const auto* attention = std::get_if<Attention>(&work)) sort(operation, *attention);
    if (memory_bound(work)) sort_rows(operation);
  }

  // A bias changes little, and what a part of attention multiplies nothing about the product.
  void sort(const Operation& operation, const Gemm& gemm) {
    Gemm key = gemm;
    key.bias = false;
    taken_.insert(key_of(operation, key));
    key.m = key.n = key.k = 1;
    key.batch = std::min<std::int64_t>(2, gemm.batch);
    add(gemms_, key_of(operation, key), operation, {gemm.batch, gemm.m, gemm.n, gemm.k});
  }

  void sort(const Operation& operation, const Attention& attention) {
    if (attention.query_length != attention.key_length) return;
    Attention key = attention;
    key.batch = key.kv_heads = key.query_length = key.key_length = 1;
    key.heads = attention.heads / attention.kv_heads;
    add(attentions_, key_of(operation, key), operation,
        {attention.batch, attention.kv_heads, attention.query_length});
  }

  // Whole rows, as many bytes for each. Attention's own sizes say more than how many rows there
  // are: no other is made of them.
  void sort_rows(const Operation& operation) {
    Operation::Work key = operation.work;
    const bool has_sizes = std::visit(
        [](auto& own) {
          return requires { own.sizes; };
        },
        key);
    KernelSize& size = *size_of_kernel(key);
    const std::int64_t width = std::max<std::int64_t>(1, size.width), elements = size.elements;
    if (has_sizes || elements % width != 0) return;
    size.bytes /= static_cast<double>(elements);
    size.elements = 1;
    add(elementwises_, key_of(operation, key), operation, {elements / width});
  }

  using MakeWork = Operation::Work (*)(const Operation& first, const SweepShape& shape);

  static Operation::Work gemm_of(const Operation& first, const SweepShape& shape) {
    Gemm out = *product_of(first.work);
    out.bias = false;
    out.batch = shape[0];
    out.m = shape[1];
    out.n = shape[2];
    out.k = shape[3];
    return out;
  }
  static Operation::Work attention_of(const Operation& first, const SweepShape& shape) {
    Attention out = std::get<Attention>(first.work);
    out.heads = out.heads / out.kv_heads * shape[1];
    out.batch = shape[0];
    out.kv_heads = shape[1];
    out.query_length = out.key_length = shape[2];
    return out;
  }
  static Operation::Work elementwise_of(const Operation& first, const SweepShape& shape) {
    Operation::Work out = first.work;
    KernelSize& size = *size_of_kernel(out);
    const double bytes = size.bytes / static_cast<double>(size.elements);
    size.elements = shape[0] * std::max<std::int64_t>(1, size.width);
    size.bytes = bytes * static_cast<double>(size.elements);
    // Rows are tokens: of whole sequences, or of one that is as long as there are rows.
    auto* rotary = std::get_if<Rotary>(&out);
    if (rotary != nullptr && shape[0] % rotary->sequence != 0) rotary->sequence = shape[0];
    return out;
  }

  void extend(const Families& families, std::int64_t extra,
              const std::vector<std::int64_t>& multiples, MakeWork work) {
    for (const auto& [key, family] : families) {
      SweepOptions sweep;
      sweep.extra = extra;
      sweep.around_octaves = options_.around_octaves;
      sweep.multiples = multiples;
      sweep.seed = options_.seed;
      sweep.largest_product = 0;
      for (const SweepShape& shape : family.shapes) {
        double product = options_.largest;
        for (const std::int64_t size : shape) product *= static_cast<double>(size);
        sweep.largest_product = std::max(sweep.largest_product, product);
      }
      for (const SweepShape& shape : sweep_grid(family.shapes, sweep)) {
        Operation operation =
            bare(family.first->name, family.first->phase, work(*family.first, shape));
        if (!taken_.insert(signature(operation)).second) continue;
        out_.kernels.push_back({std::move(operation), BlockId()});
      }
    }
  }

  // Sizes beside `needed`, multiples of `unit`.
  std::vector<ByteCount> sizes(const std::set<ByteCount>& needed, ByteCount unit) const {
    std::vector<ByteCount> out;
    const ByteCount end = kSizeStep * *needed.rbegin();
    for (ByteCount size = options_.smallest_message;; size *= kSizeStep) {
      const ByteCount whole = (std::min(size, end) + unit - 1) / unit * unit;
      if (!needed.contains(whole) && (out.empty() || out.back() != whole)) out.push_back(whole);
      if (size >= end) return out;
    }
  }

  void add_collectives() {
    std::map<NeededCollective, std::set<ByteCount>> by_rest;
    for (NeededCollective collective : needed_.collectives) {
      const ByteCount bytes = std::exchange(collective.message.bytes, 0);
      by_rest[collective].insert(bytes);
    }
    for (const auto& [rest, bytes] : by_rest) {
      for (const ByteCount size : sizes(bytes, rest.ranks() * size_of(rest.message.type))) {
        out_.collectives.push_back(rest);
        out_.collectives.back().message.bytes = size;
      }
    }
    std::sort(out_.collectives.begin(), out_.collectives.end());
  }

  void add_sends() {
    std::map<NeededSend, std::set<ByteCount>> by_rest;
    for (NeededSend send : needed_.sends) {
      const ByteCount bytes = std::exchange(send.message.bytes, 0);
      by_rest[send].insert(bytes);
    }
    for (const auto& [rest, bytes] : by_rest) {
      for (const ByteCount size : sizes(bytes, size_of(rest.message.type))) {
        out_.sends.push_back(rest);
        out_.sends.back().message.bytes = size;
      }
    }
    std::sort(out_.sends.begin(), out_.sends.end());
  }

  const NeededMeasurements& needed_;
  const GridOptions& options_;
  Families gemms_, attentions_, elementwises_;
  std::set<std::string> taken_;
  NeededMeasurements out_;
};

}  // namespace

NeededMeasurements grid(const NeededMeasurements& needed, const GridOptions& options) {
  return Grid(needed, options).make();
}

}  // namespace stepcast
