// SPDX-License-Identifier: Apache-2.0
// The shipped model that people mean by a name of theirs: "meta-llama/Llama-3.1-8B-Instruct",
// "llama3.1-8b".
#pragma once

#include <optional>
#include <string>

#include "core/error.h"

namespace stepcast {

// The stem of a file of `folder`. A name is read whatever its case and dashes, as that of the
// repository on Hugging Face that the file's `source` names, and without what a variant of the same
// shape adds to it ("-Instruct"). Empty where none or several are called so.
std::optional<std::string> shipped_model_name(const std::string& text, const std::string& folder);

// There is no such model; the hint names those that come near.
Error no_model(const std::string& text, const std::string& folder);

}  // namespace stepcast
