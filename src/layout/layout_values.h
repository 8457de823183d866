// SPDX-License-Identifier: Apache-2.0
// Types of the keys of `layout` whose values are more than a number, a truth or a name.
#pragma once

#include "layout/keys.h"

namespace stepcast {

extern const KeyType kRecompute;     // a mode, or an object that narrows one down
extern const KeyType kScheduleName;  // a name, or file:PATH
extern const KeyType kShardGroup;    // a count, or "all"
extern const KeyType kDeferredHead;  // a count, or "all"
extern const KeyType kOrder;         // as tp-cp-ep-dp-pp
extern const KeyType kStageLayers;   // a list of counts

}  // namespace stepcast
