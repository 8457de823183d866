// SPDX-License-Identifier: Apache-2.0
// Reads what one document says of a profile, without the host costs beside it.
#pragma once

namespace stepcast {

class JsonDocument;
struct Profile;

// Errors stay in the document.
Profile read_profile(JsonDocument& document);

}  // namespace stepcast
