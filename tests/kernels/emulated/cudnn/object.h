// SPDX-License-Identifier: Apache-2.0
// A descriptor of the stand-in for cuDNN: what was set, and whether it was finalized.
#pragma once

#include <cudnn_graph.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepcast::emulated {

class Refused : public std::runtime_error {
 public:
  Refused(cudnnStatus_t status, const std::string& why)
      : std::runtime_error(why), status_(status) {}
  cudnnStatus_t status() const { return status_; }

 private:
  cudnnStatus_t status_;
};

struct Object;
using ObjectPtr = std::shared_ptr<Object>;

struct Value {
  cudnnBackendAttributeType_t type;
  std::vector<std::int64_t> numbers;  // or addresses
  std::vector<ObjectPtr> objects;
};

struct Object {
  cudnnBackendDescriptorType_t type;
  bool final = false;
  std::map<cudnnBackendAttributeName_t, Value> values;

  bool has(cudnnBackendAttributeName_t name) const { return values.count(name) != 0; }
  std::int64_t number(cudnnBackendAttributeName_t name) const {
    return values.at(name).numbers.at(0);
  }
  const std::vector<std::int64_t>& numbers(cudnnBackendAttributeName_t name) const {
    return values.at(name).numbers;
  }
  const ObjectPtr& object(cudnnBackendAttributeName_t name) const {
    return values.at(name).objects.at(0);
  }
};

// Checks a descriptor as it is finalized: it has every attribute that its kind needs, of the right
// type, and none that its kind does not know. Throws Refused.
void expect_complete(const Object& object);

}  // namespace stepcast::emulated
