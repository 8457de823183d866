// SPDX-License-Identifier: Apache-2.0
// Two messages of a group of ranks are the same, wherever they are issued, if these fields are:
// they are priced once, measured once and routed once. The group itself is its holder's to name.
#pragma once

#include "operation/collective.h"

namespace stepcast {

struct Message {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  ByteCount bytes = 0;  // as struct Collective counts them
  DataType type = DataType::kBf16;
  std::int64_t copies = 0, store_sms = 0, held_sms = 0;  // as struct Collective has them
  auto operator<=>(const Message&) const = default;
};

inline Message message_of(const Collective& collective) {
  return {collective.kind,         collective.bytes,           collective.type,
          collective.copies.value, collective.store_sms.value, collective.held_sms.value};
}

}  // namespace stepcast
