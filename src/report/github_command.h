// SPDX-License-Identifier: Apache-2.0
// GitHub's workflow commands, which its runner turns into annotations of a build:
// https://docs.github.com/actions/reference/workflow-commands-for-github-actions
#pragma once

#include <string>
#include <string_view>

namespace stepcast {

// "::error title=TITLE::TEXT", a line of its own. `kind`: error, warning or notice.
std::string github_command(std::string_view kind, std::string_view title, std::string_view text);

}  // namespace stepcast
