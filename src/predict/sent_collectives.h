// SPDX-License-Identifier: Apache-2.0
// Lists the messages that a step sends, and how: for each distinct one of each group of a stage the
// algorithm, protocol and channels that the library chooses, the measured curve that prices it, and
// the link that binds it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "cost/provenance.h"
#include "operation/message.h"

namespace stepcast {

class AxisGroup;
class CollectiveCosts;
struct Program;
struct Role;
struct SimulationInput;

// Groups of one kind may lie differently: it is that of the slowest.
struct SentCollective {
  std::int32_t stage = 0;  // that issues it
  std::string kind;        // "all_reduce", "send"
  std::string group;       // "tp"; of a send "stage 1"
  std::int64_t ranks = 2;
  ByteCount bytes = 0;  // as nccl-tests counts them
  double times = 0;     // in a step, by each member
  Seconds time;         // of one, with its links to itself
  std::string algorithm, protocol;
  std::int64_t channels = 0;
  std::string curve;  // the measured table; empty: the nominal model
  Provenance provenance = Provenance::kDataSheet;
  // Its fullest link, and how full that is while the message moves; empty: it has none, or is too
  // small to load one.
  std::string bound_by;
  double full = 0;
};

// Messages of one step and how often each is sent.
std::map<Message, double> messages_of_step(const Program& program, const Role& role,
                                           AxisGroup group);

std::vector<SentCollective> sent_collectives(const SimulationInput& input,
                                             const CollectiveCosts& collectives);

// Its place in the list; -1: it is not there.
std::int32_t find_sent(const std::vector<SentCollective>& all, std::int32_t stage, AxisGroup group,
                       const Message& message);

}  // namespace stepcast
