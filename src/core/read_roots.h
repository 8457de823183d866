// SPDX-License-Identifier: Apache-2.0
// Binds the process to folders: from then on every file that it reads lies below one of them,
// however a request names it. A server for agents does so before it hears the first request,
// because a file may name another. There is no way back, so nothing can lift the limit by mistake.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

// Errors: a folder that there is not. Call it once, before other threads run.
Result<std::vector<std::string>> bind_reads_below(const std::vector<std::string>& folders);

bool reads_are_bound();

// The name by which to open a file, without "..". Nothing where it lies outside by its words alone:
// such a name is not looked at, and whether there is such a file changes nothing.
std::optional<std::string> name_to_read(const std::string& file);

// Whether an open file lies below the folders: its own path counts, not that of a link to it. True
// in a process that is not bound.
bool may_read(int descriptor);
// Whether such a file, which may not be there, would lie below them: what lies outside is not even
// said to be absent.
bool may_name(const std::string& file);

}  // namespace stepcast
