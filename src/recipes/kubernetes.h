// SPDX-License-Identifier: Apache-2.0
// Manifests that start a launch script in pods, one per node: a ConfigMap with the files, and a
// JobSet (jobset.x-k8s.io/v1alpha2) or a PyTorchJob (kubeflow.org/v1).
#pragma once

#include <string>
#include <vector>

#include "recipes/launch_script.h"

namespace stepcast {

struct LaunchFile {
  std::string name;
  std::string text;
  bool executable = false;
};

enum class PodJob { kJobSet, kPyTorchJob };

// `files` go into the ConfigMap; the pods run the first. `image` is the container's.
std::string kubernetes_manifest(const World& world, const std::vector<LaunchFile>& files,
                                PodJob kind, const std::string& image);

// The files of the ConfigMaps of a manifest; empty when it is none.
std::vector<LaunchFile> files_in_manifest(const std::string& text);

inline constexpr const char* kPodFolder = "/launch";  // where the files are in a pod

}  // namespace stepcast
