// SPDX-License-Identifier: Apache-2.0
// What a kernel's time depends on, as one line of text: the key under which a calibration files an
// operation that it measured exactly, and a forecast finds it again (docs/formats/profile.md,
// "Exact"). Two operations with one signature do the same work; names of buffers and phases that
// change nothing about it (a recomputed forward) are left out.
#pragma once

#include <string>

#include "operation/operation.h"

namespace stepcast {

const char* name_of(GemmRole role);
const char* name_of(ElementwiseKind kind);
inline constexpr int kElementwiseKinds = 13;

// "gemm forward 1x512x1024x256 fp32 fp32" (batch x m x n x k, input, output, "accumulate" where it
// does), "attention backward 2x16x4x512x512x64 causal fp32" (batch x heads x kv heads x query x key
// length x head dimension), "elementwise rotary rotary forward 65536 width 64 bytes 524288" (the
// operation's name, its kind), "collective all_reduce 4096 fp32" (bytes).
std::string signature(const Operation& operation);

}  // namespace stepcast
