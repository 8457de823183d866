// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu_software.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/launch_run.h"
#include "core/shared_library.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

// CMake has found these (cmake/BuiltWith.cmake); "" without.
constexpr std::string_view kCuda = STEPCAST_BUILT_WITH_CUDA;
constexpr std::string_view kNccl = STEPCAST_BUILT_WITH_NCCL;
constexpr const char* kFolder = STEPCAST_CUDA_FOLDER;  // where the toolkit's libraries were

// Looks where the loader does, then where the toolkit was when this was built.
SharedLibrary library_of(const std::string& file) {
  return {file, file, "", *kFolder == 0 ? "" : (fs::path(kFolder) / file).string()};
}

// Tells a file that cannot be loaded from one that is missing.
std::string found(const SharedLibrary& library) {
  const std::string& error = library.loader_error();
  if (error.empty()) return "found";
  return error.find("No such file") == std::string::npos ? "cannot be loaded: " + error : "missing";
}

// Calls a function that writes a number and returns 0.
std::optional<int> number_of(const SharedLibrary& library, const char* function) {
  int (*ask)(int*) = nullptr;
  library.look_for(ask, function);
  int out = 0;
  if (ask == nullptr || ask(&out) != 0) return std::nullopt;
  return out;
}
// Calls a function that returns the version.
std::optional<std::size_t> version_of(const SharedLibrary& library, const char* function) {
  std::size_t (*ask)() = nullptr;
  library.look_for(ask, function);
  return ask == nullptr ? std::nullopt : std::optional(ask());
}
std::string parts(std::size_t number, std::size_t major, std::size_t minor) {
  return fmt::format("{}.{}.{}", number / major, number % major / minor, number % minor);
}

SoftwareFinding program() {
  const fs::path file = gpu_program();
  std::error_code none;
  if (fs::exists(file, none)) {
    const std::string nccl = kNccl.empty() ? "without NCCL" : fmt::format("NCCL {}", kNccl);
    return {"stepcast-gpu",
            fmt::format("built with CUDA {}, {}", kCuda.empty() ? "?" : kCuda, nccl),
            kNccl.empty() ? "for --ranks: build where nccl.h is" : ""};
  }
  return {"stepcast-gpu",
          kCuda.empty() ? "not built: no CUDA toolkit was found" : "not beside stepcast",
          kCuda.empty() ? "to measure GPUs: build where nvcc and cuBLASLt of CUDA 12 or later are"
                        : fmt::format("build or install it: {}", file.string())};
}

SoftwareFinding driver() {
  const SharedLibrary library = library_of("libcuda.so.1");
  const auto version = number_of(library, "cuDriverGetVersion");
  if (version) {
    return {"CUDA driver", fmt::format("for CUDA {}.{}", *version / 1000, *version % 1000 / 10),
            ""};
  }
  return {"CUDA driver", found(library), "to measure GPUs: install NVIDIA's driver"};
}

SoftwareFinding products() {
  const std::string major(kCuda.substr(0, kCuda.find('.')));
  const std::string file = "libcublasLt.so" + (major.empty() ? "" : "." + major);
  const SharedLibrary library = library_of(file);
  const auto version = version_of(library, "cublasLtGetVersion");
  // 130002 since CUDA 13, 120304 before.
  if (version) return {"cuBLASLt", parts(*version, 10000, 100), ""};
  return {"cuBLASLt", found(library),
          fmt::format("stepcast-gpu does not start without it: put the folder of {} into "
                      "LD_LIBRARY_PATH",
                      file)};
}

SoftwareFinding attention() {
  const SharedLibrary library = library_of("libcudnn.so.9");
  const auto version = version_of(library, "cudnnGetVersion");
  if (version) return {"cuDNN", parts(*version, 10000, 100), ""};
  return {"cuDNN", found(library), ""};
}

SoftwareFinding communication() {
  const SharedLibrary library = library_of("libnccl.so.2");
  const auto version = number_of(library, "ncclGetVersion");
  if (version) return {"NCCL", parts(static_cast<std::size_t>(*version), 10000, 100), ""};
  return {"NCCL", found(library),
          "for calibrate --ranks: install libnccl2, or put its folder into LD_LIBRARY_PATH"};
}

SoftwareFinding management() {
  const SharedLibrary library = library_of("libnvidia-ml.so.1");
  return {"NVML", found(library),
          library.loader_error().empty()
              ? ""
              : "clocks, power and throttling go unrecorded: it comes with the driver"};
}

}  // namespace

std::vector<SoftwareFinding> gpu_software() {
  return {program(), driver(), products(), attention(), communication(), management()};
}

}  // namespace stepcast::cli
