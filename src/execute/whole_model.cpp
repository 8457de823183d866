// SPDX-License-Identifier: Apache-2.0
#include "execute/whole_model.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "execute/initial_weights.h"

namespace stepcast {
namespace {

// Calls visit(layer, parameter, whole place, local index, value) for every owned element.
template <class Visit>
void for_each_owned(RoleRunner& runner, Visit visit) {
  FlatState& state = runner.state();
  for (const PlacedParameter& placed : runner.parameters()) {
    const WholePlace place(*placed.parameter, runner.part());
    for (const OwnedPiece& piece : state.shards().within(placed.range)) {
      const std::vector<float> weights = state.weights_on_host(piece);
      visit(placed, place, piece.range.begin - placed.range.begin, weights.data(),
            piece.range.size());
    }
  }
}

std::system_error io_error(const std::string& file, const char* what) {
  return std::system_error(errno, std::generic_category(), file + ": " + what);
}

}  // namespace

void WholeModel::take(RoleRunner& runner) {
  for_each_owned(runner, [&](const PlacedParameter& placed, const WholePlace& place,
                             std::int64_t first, const float* values, std::int64_t count) {
    std::vector<float>& whole = parameters_[{placed.layer, placed.parameter->name}];
    whole.resize(static_cast<std::size_t>(place.elements));
    const std::int64_t columns = placed.parameter->columns;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t local = first + i;
      whole[static_cast<std::size_t>(place.index(local / columns, local % columns))] = values[i];
    }
  });
}

double WholeModel::relative_error(RoleRunner& runner, const WholeModel& reference) {
  double difference = 0, size = 0;
  bool missing = false;
  for_each_owned(runner, [&](const PlacedParameter& placed, const WholePlace& place,
                             std::int64_t first, const float* values, std::int64_t count) {
    const auto found = reference.parameters_.find({placed.layer, placed.parameter->name});
    if (found == reference.parameters_.end() ||
        found->second.size() != static_cast<std::size_t>(place.elements)) {
      missing = true;
      return;
    }
    const std::int64_t columns = placed.parameter->columns;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t local = first + i;
      const double other =
          found->second[static_cast<std::size_t>(place.index(local / columns, local % columns))];
      difference += (values[i] - other) * (values[i] - other);
      size += other * other;
    }
  });
  const double error = std::sqrt(difference / size);
  return missing || !std::isfinite(error) ? std::numeric_limits<double>::infinity() : error;
}

double WholeModel::relative_error(const WholeModel& reference) const {
  double difference = 0, size = 0;
  for (const auto& [key, values] : parameters_) {
    const auto found = reference.parameters_.find(key);
    if (found == reference.parameters_.end() || found->second.size() != values.size()) {
      return std::numeric_limits<double>::infinity();
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double other = found->second[i];
      difference += (values[i] - other) * (values[i] - other);
      size += other * other;
    }
  }
  const double error = std::sqrt(difference / size);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

std::size_t WholeModel::elements() const {
  std::size_t sum = 0;
  for (const auto& [key, values] : parameters_) sum += values.size();
  return sum;
}

void WholeModel::save(const std::string& file) const {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  const auto number = [&](std::int64_t value) {
    stream.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const auto& [key, values] : parameters_) {
    number(key.first);
    number(static_cast<std::int64_t>(key.second.size()));
    stream.write(key.second.data(), static_cast<std::streamsize>(key.second.size()));
    number(static_cast<std::int64_t>(values.size()));
    stream.write(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  stream.flush();
  if (!stream) throw io_error(file, "cannot be written");
}

WholeModel WholeModel::load(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw io_error(file, "cannot be read");
  // Whether all of it came. A read that the system refuses is no end of the file.
  const auto read = [&](void* data, std::size_t bytes) {
    stream.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
    if (stream.bad()) throw io_error(file, "cannot be read");
    return static_cast<bool>(stream);
  };
  const std::runtime_error ends_early(file + ": ends early");
  WholeModel out;
  std::int64_t layer = 0, length = 0, count = 0;
  while (read(&layer, sizeof layer)) {
    if (!read(&length, sizeof length)) throw ends_early;
    std::string name(static_cast<std::size_t>(length), ' ');
    if (!read(name.data(), name.size()) || !read(&count, sizeof count)) throw ends_early;
    std::vector<float>& values = out.parameters_[{layer, name}];
    values.resize(static_cast<std::size_t>(count));
    if (!read(values.data(), values.size() * sizeof(float))) throw ends_early;
  }
  if (stream.gcount() != 0) throw ends_early;
  return out;
}

}  // namespace stepcast
