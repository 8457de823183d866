// SPDX-License-Identifier: Apache-2.0
// stepcast-fit: rewrites the shipped profiles from the published tables of kernels and collectives.
// It writes the same bytes from the same tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>

#include "calibrate/fit/fit_collectives.h"
#include "calibrate/fit/published.h"
#include "calibrate/fit/shipped.h"
#include "calibrate/profile_writer.h"
#include "core/json.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr int kUsage = 2;

int report(const Errors& errors) {
  fmt::print(stderr, "{}\n", terminal_lines(to_string(errors)).text());
  return kUsage;
}

// Median, and what 90 % are below.
std::string text_of(const FitError& error) {
  return fmt::format("{:4.1f} % ({:4.1f} %)", 100 * error.median, 100 * error.p90);
}

void print_curves(const ShippedProfile& shipped) {
  for (const CurveNote& note : shipped.notes) {
    fmt::print("{:<22} {:<16} {:<13}", shipped.profile.name, note.operation,
               name_of(note.provenance));
    if (note.form.median > 0) fmt::print(" fit {}", text_of(note.form));
    if (note.held_out.median > 0) {
      fmt::print(", held out");
      if (note.cells.median > 0) fmt::print(" cells {},", text_of(note.cells));
      fmt::print(" sizes {}", text_of(note.held_out));
    }
    fmt::print("\n");
  }
}

Errors write_profile(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string path = fmt::format("{}/{}.json", folder, name);
  std::ofstream file(path);
  file << text;
  if (!file.flush()) return {{ErrorCode::kIo, "cannot be written", path, "", ""}};
  return {};
}

// One profile for each device, with what its kernels cost.
Errors write_devices(const std::string& published_folder, const std::string& topologies,
                     const std::string& out_folder) {
  const Result<Published> published = read_published(published_folder);
  if (!published) return published.error();
  const auto accelerators = list_accelerators(topologies);
  if (!accelerators) return accelerators.error();
  std::map<std::string, Accelerator> by_name;
  for (const Accelerator& accelerator : *accelerators) by_name[accelerator.name] = accelerator;
  const auto shipped = ship_profiles(*published, by_name);
  if (!shipped) return shipped.error();
  for (const ShippedProfile& profile : *shipped) {
    print_curves(profile);
    Errors errors = write_profile(out_folder, profile.profile.name, profile_text(profile));
    if (!errors.empty()) return errors;
  }
  return {};
}

// One file of curves for all devices: a curve is chosen by what the cluster's links are.
Errors write_collectives(const std::string& published_folder, const std::string& out_folder) {
  const auto published = published_collectives(published_folder);
  if (!published) return published.error();
  std::vector<JsonDocument*> documents;
  for (const auto& document : *published) documents.push_back(document.get());
  const Result<FittedCollectives> fitted = fit_collective_curves(documents);
  if (!fitted) return fitted.error();
  for (const FittedCollectives::Curve& curve : fitted->curves) {
    constexpr Bytes kFrom(16.0 * 1024 *
                          1024);  // below, NCCL changes its protocol between two sizes
    const FitError error = held_out_sizes(curve.measured, curve.samples, kFrom);
    if (error.median > 0) {
      fmt::print("{:<39} held out sizes from 16 MiB on {}\n", curve.measured.id, text_of(error));
    }
  }
  return write_profile(out_folder, "collectives", fitted->text);
}

int run(const std::string& published, const std::string& topologies, const std::string& out) {
  Errors errors = write_devices(published, topologies, out);
  if (errors.empty()) errors = write_collectives(published, out);
  return errors.empty() ? 0 : report(errors);
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  CLI::App app("Fits the shipped profiles to the published tables of kernels and collectives.",
               "stepcast-fit");
  std::string published = "calibrate/published", topologies = "topologies",
              out = "calibrate/profiles";
  app.add_option("--published", published, "folder of published tables")->capture_default_str();
  app.add_option("--topologies", topologies, "folder that holds accelerators/")
      ->capture_default_str();
  app.add_option("--out", out, "folder of profiles to write")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return stepcast::run(published, topologies, out);
}
