// SPDX-License-Identifier: Apache-2.0
// Numbers of a diagnosis as its table and its page show them.
#pragma once

#include <string>

namespace stepcast {

std::string signed_time_text(double seconds);       // "-4.2 ms"; 0 s below what a trace resolves
std::string message_bytes_text(double bytes);       // "139.6 GB", "4 B"
std::string message_rate_text(double bytes_per_s);  // "-" of some bytes, whose time tells no rate

}  // namespace stepcast
