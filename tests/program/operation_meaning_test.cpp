// SPDX-License-Identifier: Apache-2.0
// Signatures of all operations of lowered programs: they follow from what an operation is, and from
// nothing else.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/each.h"
#include "operation/signature.h"
#include "operation/work_forms.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Every field of a work as a number, but for launches: how often an unfused framework would launch
// it says nothing about the work.
void add_fields(const Rows& rows, const void* holder, std::vector<double>& out) {
  for (const Row& row : rows) {
    const void* value = row.of(holder);
    const RowType& type = *row.type;
    if (type.kind == RowKind::kObject) {
      add_fields(type.rows(), value, out);
    } else if (type.kind == RowKind::kOptional) {
      const void* held = type.held(value);
      out.push_back(held ? static_cast<double>(type.element->integer(held)) : 0);
    } else if (type.kind == RowKind::kNumber) {
      out.push_back(type.number(value));
    } else if (type.integer == nullptr) {
      out.push_back(static_cast<double>(static_cast<const AxisGroup*>(value)->hash()));
    } else if (row.key != std::string("launches")) {
      out.push_back(static_cast<double>(type.integer(value)));
    }
  }
}

std::vector<double> meaning_of(const Operation& operation) {
  std::vector<double> out{static_cast<double>(operation.work.index())};
  add_fields(form_of(operation.work).rows(), struct_of(operation.work), out);
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
