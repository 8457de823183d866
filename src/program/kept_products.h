// SPDX-License-Identifier: Apache-2.0
// Which products of a layer torchtitan_op keeps: it counts them and keeps every second one, the
// first among them (torchtitan/distributed/activation_checkpoint.py, where aten.mm counts).
// Queries, keys and values are three, the halves of a gated MLP two. The router's product neither
// counts nor is kept (force_recompute_mm_shapes_by_fqns, "moe.router.gate"), nor are those of
// routed experts and those in fp8: aten._grouped_mm and aten._scaled_mm are not on the list.
#pragma once

#include <cstdint>

namespace stepcast {

class KeptProducts {
 public:
  KeptProducts() = default;  // keeps all
  static KeptProducts every_second(bool in_fp8) {
    KeptProducts out;
    out.chooses_ = true;
    out.none_ = in_fp8;
    return out;
  }

  bool chooses() const { return chooses_; }
  // Numbers begin at 1.
  bool has(std::int64_t number) const {
    return !chooses_ || (!none_ && (before_ + number) % 2 == 1);
  }
  // These count behind so many others.
  KeptProducts behind(std::int64_t others) const {
    KeptProducts out = *this;
    out.before_ += others;
    return out;
  }
  // How many `outputs` of a packed product are made again, which counts as so many equal ones.
  std::int64_t dropped(std::int64_t outputs, std::int64_t parts, std::int64_t first = 1) const {
    std::int64_t out = 0;
    for (std::int64_t i = 0; i < parts; ++i) {
      if (!has(first + i)) out += outputs / parts;
    }
    return out;
  }

 private:
  bool chooses_ = false, none_ = false;
  std::int64_t before_ = 0;
};

}  // namespace stepcast
