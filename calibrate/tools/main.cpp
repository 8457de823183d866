// SPDX-License-Identifier: Apache-2.0
// stepcast-fit: rewrites the shipped profiles from the published tables. Same tables, same bytes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>

#include "calibrate/fit/published.h"
#include "calibrate/fit/shipped.h"
#include "calibrate/profile_writer.h"

namespace stepcast {
namespace {

constexpr int kUsage = 2;

int report(const Errors& errors) {
  fmt::print(stderr, "{}\n", to_string(errors));
  return kUsage;
}

void print_curves(const ShippedProfile& shipped) {
  for (const CurveNote& note : shipped.notes) {
    fmt::print("{:<22} {:<16} {:<13}", shipped.profile.name, note.operation,
               name_of(note.provenance));
    if (note.held_out.median > 0) {
      fmt::print(" fit {:4.1f} %, 90 % below {:4.1f} %; held out {:4.1f} %, 90 % below {:4.1f} %",
                 100 * note.form.median, 100 * note.form.p90, 100 * note.held_out.median,
                 100 * note.held_out.p90);
    }
    fmt::print("\n");
  }
}

int run(const std::string& published_folder, const std::string& topologies,
        const std::string& out_folder) {
  const Result<Published> published = read_published(published_folder);
  if (!published) return report(published.error());
  const auto accelerators = list_accelerators(topologies);
  if (!accelerators) return report(accelerators.error());
  std::map<std::string, Accelerator> by_name;
  for (const Accelerator& accelerator : *accelerators) by_name[accelerator.name] = accelerator;
  const auto shipped = ship_profiles(*published, by_name);
  if (!shipped) return report(shipped.error());
  for (const ShippedProfile& profile : *shipped) {
    print_curves(profile);
    const std::string path = fmt::format("{}/{}.json", out_folder, profile.profile.name);
    std::ofstream file(path);
    file << profile_text(profile);
    if (!file.flush()) return report({{ErrorCode::kIo, "cannot be written", path, "", ""}});
  }
  return 0;
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  CLI::App app("Fits the shipped profiles to the published kernel tables.", "stepcast-fit");
  std::string published = "calibrate/published", topologies = "topologies",
              out = "calibrate/profiles";
  app.add_option("--published", published, "folder of published tables")->capture_default_str();
  app.add_option("--topologies", topologies, "folder that holds accelerators/")
      ->capture_default_str();
  app.add_option("--out", out, "folder of profiles to write")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return stepcast::run(published, topologies, out);
}
