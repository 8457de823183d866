// SPDX-License-Identifier: Apache-2.0
// The passes of one stage in their order, and the transfers that lead from one stage to the next:
// what every arrangement of a step on a pipeline does around its blocks.
#pragma once

#include <vector>

#include "program/role_builder.h"
#include "schedule/schedule.h"

namespace stepcast {

struct Scenario;

// Whether all blocks have their backward apart; a head whose weight gradients wait has so alone.
bool splits_backward(const RoleBuilder& builder);

// If they do, a whole backward in the order is the two passes in a row.
StageOrder passes_of(const RoleBuilder& builder, const StageOrder& order);

// The place in the order of each chunk's last pass that completes gradients.
std::vector<std::size_t> last_backwards(const StageOrder& order, std::size_t chunks);

class StageTransfers {
 public:
  explicit StageTransfers(RoleBuilder& builder);

  // Receives what a pass reads, and nothing where it stands at the model's end.
  InstructionIndex receive_for(const Slot& slot);
  InstructionIndex send_after(const Slot& slot, InstructionIndex run);
  // The host waits here for a receipt, and for the last send where sends block.
  void wait_for(InstructionIndex received);
  // Only the stages where the model begins and ends read text.
  void load_batch(const Slot& slot, InstructionIndex received);

  // Receives what a pass reads, and hands out its text.
  InstructionIndex begin(const Slot& slot);
  // Sends what the pass has made: its instructions are those from `first` on.
  void end(const Slot& slot, InstructionIndex received, InstructionIndex first);

  void remember_send(InstructionIndex sent) { pending_send_ = sent; }

 private:
  bool blocks_on_sends() const;
  Stream stream_for(const Slot& slot, bool sends) const;
  std::int64_t model_chunk(const Slot& slot) const {
    return builder_.role().chunks[static_cast<std::size_t>(slot.chunk)].model_chunk;
  }

  RoleBuilder& builder_;
  const Scenario& scenario_;
  const Layout& layout_;
  Pipeline pipeline_;
  InstructionIndex pending_send_ = kNoInstruction;
};

}  // namespace stepcast
