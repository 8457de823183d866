// SPDX-License-Identifier: Apache-2.0
// Signatures of all operations of lowered programs: they follow from what an operation is, and from
// nothing else.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <type_traits>

#include "core/each.h"
#include "operation/signature.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Every field of a work as a number, but for launches: how often an unfused framework would launch
// it says nothing about the work.
template <class Holder>
void add_fields(const Holder& holder, std::vector<double>& out) {
  std::apply(
      [&](const auto&... field) {
        [[maybe_unused]] const auto add = [&](const char* key, const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, AxisGroup>) {
            out.push_back(static_cast<double>(value.hash()));
          } else if constexpr (std::is_class_v<Value>) {
            add_fields(value, out);
          } else if (std::string(key) != "launches") {
            out.push_back(static_cast<double>(value));
          }
        };
        (add(field.first, holder.*field.second), ...);
      },
      Holder::fields());
}

std::vector<double> meaning_of(const Operation& operation) {
  std::vector<double> out{static_cast<double>(operation.work.index())};
  std::visit([&](const auto& work) { add_fields(work, out); }, operation.work);
  return out;
}

std::vector<Program> programs() {
  const auto of = [](const std::string& model, const std::string& training,
                     const std::string& layout) {
    return lower(testing::scenario_from(R"({"stepcast": 1, "model": ")" + model +
                                        R"(", "cluster": {"base": "dgx-h100", "nodes": 2},
            "training": {"global_batch": 64, )" +
                                        training + R"(}, "layout": {)" + layout + "}}"));
  };
  std::vector<Program> out;
  out.push_back(of("gpt2", R"("attention": "unfused")", R"("tp": 2, "pp": 2)"));
  out.push_back(
      of("llama-3.1-8b", R"("sequence_length": 4096)", R"("tp": 4, "recompute": "full")"));
  out.push_back(
      of("llama-3.1-8b", R"("sequence_length": 2048, "framework": "fsdp")", R"("zero": 3)"));
  out.push_back(of("llama-2-7b", R"("mode": "qlora", "lora_rank": 16)", R"("dp": 16)"));
  out.push_back(of("qwen3-8b", R"("precision": "fp16", "sequence_length": 1024)", R"("pp": 4)"));
  return out;
}

template <class Visit>
void each_operation(Program& program, Visit visit) {
  for (Block& block : program.blocks) {
    for (BlockPass& pass : block.passes) {
      for (Operation& operation : pass.operations) visit(operation);
    }
  }
}

TEST(OperationMeaning, OfAnotherNameHasTheSameSignature) {
  for (const Program& program : each_of(programs())) {
    Program renamed = program, own = program;
    each_operation(renamed, [](Operation& operation) { operation.name = "another"; });
    std::vector<std::string> before, after;
    each_operation(own, [&](Operation& o) { before.push_back(signature(o)); });
    each_operation(renamed, [&](Operation& o) { after.push_back(signature(o)); });
    EXPECT_GT(before.size(), 40U);
    EXPECT_EQ(before, after);
  }
}

TEST(OperationMeaning, IsOneToOneWithSignatures) {
  std::map<std::string, std::vector<double>> meanings;
  std::set<std::vector<double>> known;
  for (Program& program : each_of(programs())) {
    each_operation(program, [&](Operation& operation) {
      const std::vector<double> meaning = meaning_of(operation);
      const auto [found, fresh] = meanings.try_emplace(signature(operation), meaning);
      EXPECT_EQ(found->second, meaning) << found->first;
      known.insert(meaning);
    });
  }
  EXPECT_EQ(known.size(), meanings.size());
  EXPECT_GT(known.size(), 150U);
}

}  // namespace
}  // namespace stepcast
