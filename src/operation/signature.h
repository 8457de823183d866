// SPDX-License-Identifier: Apache-2.0
// Writes what a kernel's time depends on as one line of text: the key under which a calibration
// files an operation that it measured exactly, and a forecast finds it again
// (docs/formats/profile.md, "Exact"). It is made of the work's own fields: two operations with one
// signature do the same work. The names of operations and buffers are not in it, nor the phase,
// which changes nothing about the work (a recomputed forward), nor in how many kernels an unfused
// framework would launch it.
#pragma once

#include <string>
#include <string_view>

namespace stepcast {

struct Operation;

// "gemm forward 1x512x1024x256 fp32 fp32" (batch x m x n x k, input, output, "accumulate" and
// "bias" where they hold), "attention backward 2x16x4x512x512x64 causal fp32" (batch x heads x kv
// heads x query x key length x head dimension); all others by their rows: "rotary
// backward sequence 512 heads 8 kv_heads 2 head_dim 64 type bf16 elements 655360 width 640 bytes
// 2621440".
std::string signature(const Operation& operation);

// A signature of a collective; one that comes from a file too.
bool is_signature_of_collective(std::string_view signature);

}  // namespace stepcast
