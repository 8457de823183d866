// SPDX-License-Identifier: Apache-2.0
#include "execute/shards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "core/data_type.h"
#include "core/each.h"
#include "layout/axis_group.h"
#include "layout/layout.h"
#include "layout/rank_grid.h"
#include "operation/collective_kind.h"
#include "program/instruction.h"
#include "program/program.h"
#include "program/rank_stream.h"

namespace stepcast {
namespace {

Instruction reduction(AxisGroup group, ElementRange elements) {
  CollectiveCall call{Purpose::kGradients,
                      group,
                      {CollectiveKind::kReduceScatter, elements.size() * size_of(DataType::kFp32),
                       DataType::kFp32}};
  call.elements = elements;
  return {Stream::kReduce, "reduce", call};
}

// Eight ranks, two tensor-parallel; experts lie on two ranks each and are twice among the four.
class Shards2 : public ::testing::Test {
 protected:
  Shards2() {
    layout_.tp = 2;
    layout_.dp = 4;
    layout_.etp = 2;
    layout_.ep = 2;
    role_.parameters = 140;
    role_.stretches = {{AxisGroup::kData, {0, 100}, {}}, {AxisGroup::kExpertData, {100, 140}, {}}};
    role_.instructions = {reduction(AxisGroup::kData, {50, 100}),
                          reduction(AxisGroup::kExpertData, {100, 140}),
                          reduction(AxisGroup::kData, {0, 50})};
  }
  Layout layout_;
  Role role_;
};

// The members of a group own each element of its stretch once, whatever the other group owns.
TEST_F(Shards2, EachGroupSharesItsOwnStretch) {
  const RankGrid grid(layout_);
  for (const FlatStretch& stretch : role_.stretches) {
    for (const RankId first : {RankId(0), RankId(1)}) {
      std::map<std::int64_t, int> owners;
      for (const RankId member : grid.members(stretch.group, first)) {
        const Shards shards(role_, true, grid, member);
        for (const OwnedPiece& piece : shards.within(stretch.range)) {
          for (std::int64_t i = piece.range.begin; i < piece.range.end; ++i) ++owners[i];
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(owners.size()), stretch.range.size());
      for (const auto& [element, count] : owners) EXPECT_EQ(count, 1) << element;
    }
  }
  EXPECT_EQ(Shards(role_, true, grid, RankId(3)).elements(), 100 / 4 + 40 / 2 + 1);
}

// A fraction f of n elements is f n of them, rounded up once, however they are cut into pieces: the
// parts of each piece are together what the piece was.
TEST_F(Shards2, SplitIntoAFractionOfAllAndTheRest) {
  const Shards whole(role_, true, RankGrid(layout_), RankId(3));
  for (const double fraction : each_of(std::vector{0.0, 0.3, 0.5, 1.0})) {
    const auto [first, rest] = whole.split(fraction);
    EXPECT_EQ(first.elements(), std::llround(std::ceil(fraction * 46)));
    EXPECT_EQ(first.elements() + rest.elements(), whole.elements());
    for (const OwnedPiece& piece : whole.pieces()) {
      std::int64_t place = piece.range.begin;
      for (const Shards* side : {&first, &rest}) {
        for (const OwnedPiece& part : side->within(piece.range)) {
          EXPECT_EQ(part.range.begin, place);
          EXPECT_EQ(side->offset_of(place), part.offset);
          EXPECT_EQ(whole.offset_of(place), piece.offset + place - piece.range.begin);
          place = part.range.end;
        }
      }
      EXPECT_EQ(place, piece.range.end);
    }
  }
}

TEST_F(Shards2, WhatNobodySharesIsOwnedWhole) {
  layout_.ep = 4;
  const RankGrid grid(layout_);
  const Shards shards(role_, true, grid, RankId(5));
  EXPECT_EQ(shards.within({100, 140}).size(), 1U);
  EXPECT_EQ(shards.within({100, 140}).front().range.size(), 40);
  EXPECT_EQ(Shards(role_, false, grid, RankId(5)).elements(), 140);
}

}  // namespace
}  // namespace stepcast
