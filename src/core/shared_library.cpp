// SPDX-License-Identifier: Apache-2.0
#include "core/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace stepcast {

SharedLibrary::SharedLibrary(std::string title, std::string file, std::string oldest,
                             const std::string& elsewhere)
    : title_(std::move(title)),
      file_(std::move(file)),
      oldest_(std::move(oldest)),
      handle_(::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  loader_error_ = ::dlerror();
  if (!elsewhere.empty()) handle_ = ::dlopen(elsewhere.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    why_not_ = fmt::format("no {}: {}", title_, loader_error_);
  } else {
    loader_error_.clear();
  }
}

void* SharedLibrary::find(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

void SharedLibrary::miss(const char* name) {
  if (why_not_) return;
  why_not_ =
      fmt::format("no {}: {} has no {}: {} or later is needed", title_, file_, name, oldest_);
}

}  // namespace stepcast
