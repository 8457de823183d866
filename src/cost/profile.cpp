// SPDX-License-Identifier: Apache-2.0
#include "cost/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/data_folder.h"
#include "core/carried_files.h"
#include "core/data_name.h"
#include "core/enum_names.h"
#include "core/read_rows.h"
#include "core/remembered_files.h"
#include "core/row_types.h"
#include "cost/profile_curves.h"
#include "cost/profile_document.h"
#include "cost/profile_forms.h"
#include "layout/choices.h"

namespace stepcast {
namespace {

constexpr double kExactError = 0.02;  // of kernels measured on another day, where none is stated

constexpr double kMostSms = 64;  // of one channel: more are a mistake

// Other data that lives beside the profiles.
// The folder also holds what is shared by all profiles.
bool is_profile(const std::string& stem) {
  return stem != "hosts" && stem != "collectives" && stem != "measured_errors";
}

tl::unexpected<Errors> unknown_profile(const std::string& name, const std::string& folder) {
  std::vector<std::string> known = data_names(folder).value_or(std::vector<std::string>());
  std::erase_if(known, [](const std::string& stem) { return !is_profile(stem); });
  std::string hint = did_you_mean(name, known);
  if (hint.empty()) hint = known.empty() ? folder + " holds none" : "one of " + one_of(known);
  return failure({ErrorCode::kNotFound, fmt::format("there is no profile '{}'", name), "",
                  "profile", std::move(hint)});
}

void read_log_errors(const JsonValue& value, std::array<double, kCurves>& sigma) {
  ObjectReader reader(value);
  for (std::size_t curve = 0; curve < sigma.size(); ++curve) {
    sigma[curve] = reader.number(curve_names()[curve], 0, 10).value_or(sigma[curve]);
  }
  reader.finish();
}

// Other facts are for people.
MeasuredMachine read_machine(const JsonValue& value) {
  ObjectReader reader(value);
  MeasuredMachine out;
  out.processor = reader.text("processor").value_or("");
  out.cores = reader.integer("cores", 1, 1 << 20).value_or(0);
  return out;
}

// Reads what the host of a measured machine spends, under the frameworks that it names or under
// any. Keys that are left out cost nothing: a program that calls its kernels itself launches none.
void read_own_host(const JsonValue& value, Profile& profile) {
  ObjectReader reader(value);
  HostFit host = kNoHost;
  read_keys(reader, host);
  profile.own_host.fill(!reader.has("frameworks"));
  for (const Framework framework : read_framework_list(reader)) {
    profile.own_host[framework] = true;
  }
  reader.finish();
  for (const Framework framework : all_frameworks()) {
    if (profile.own_host[framework]) profile.host[framework] = host;
  }
}

}  // namespace

Profile read_profile(JsonDocument& document) {
  ObjectReader reader(document.root());
  Profile out;
  out.file = document.file();
  out.sigma[static_cast<std::size_t>(Curve::kExact)] = kExactError;
  if (!reader.is_format("stepcast_profile", 1)) return out;
  out.name = reader.required_text("name");
  out.device = reader.required_text("device");
  if (const auto machine = reader.value("machine")) out.machine = read_machine(*machine);
  if (const auto host = reader.value("host")) read_own_host(*host, out);
  if (const auto factor = reader.number("disturbance", 1, 100)) out.disturbance = *factor;
  if (const auto overlap = reader.value("overlap")) {
    ObjectReader beside(*overlap);
    out.sms_per_channel = beside.number("sms_per_channel", 0, kMostSms).value_or(1);
    beside.finish();
  }
  if (const auto memory = reader.value("host_memory")) {
    out.host_memory = read_object<HostMemory>(*memory);
  }
  reader.ignore("notes");
  if (reader.required("provenance")) {
    if (const auto index = reader.choice("provenance", enum_names<Provenance>())) {
      out.provenance = static_cast<Provenance>(*index);
    }
  }
  out.fitted_on = read_texts(reader, "fitted_on");
  if (const auto errors = reader.required("log_error")) read_log_errors(*errors, out.sigma);
  if (const auto curves = reader.required("curves")) {
    for (const JsonValue& curve : curves->items()) read_curve(curve, out);
  }
  reader.finish();
  return out;
}

const AttentionVariant* Profile::variant(const std::string& kernel) const {
  const auto found =
      std::find_if(attention_variants.begin(), attention_variants.end(),
                   [&](const AttentionVariant& candidate) { return candidate.name == kernel; });
  return found == attention_variants.end() ? nullptr : &*found;
}

void read_hosts(JsonDocument& document, Profile& profile) {
  ObjectReader reader(document.root());
  reader.is_format("stepcast_hosts", 1);
  reader.ignore("notes");
  reader.ignore("sources");
  const auto frameworks = reader.required("frameworks");
  if (!document.ok() || !frameworks) return;
  ObjectReader by_framework(*frameworks);
  for (const Framework framework : all_frameworks()) {
    const auto entry = by_framework.value(name_of(framework));
    if (!entry) continue;
    ObjectReader host(*entry);
    HostFit read = profile.host[framework];
    read_keys(host, read);
    const std::vector<std::string> fitted_on = read_texts(host, "fitted_on");
    host.finish();
    if (profile.own_host[framework]) continue;
    profile.host[framework] = read;
    profile.fitted_on.insert(profile.fitted_on.end(), fitted_on.begin(), fitted_on.end());
  }
  by_framework.finish();
  reader.finish();
}

namespace {

Result<Profile> read_with_hosts(const std::string& file, const std::string& hosts) {
  auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  Profile profile = read_profile(**document);
  if (!(*document)->ok()) return failure((*document)->errors());
  const auto measured = [&](Framework framework) { return profile.own_host[framework]; };
  if (std::ranges::all_of(all_frameworks(), measured)) return profile;

  if (!is_data_file(hosts)) return profile;
  auto host_document = JsonDocument::load(hosts);
  if (!host_document) return failure(host_document.error());
  read_hosts(**host_document, profile);
  if (!(*host_document)->ok()) return failure((*host_document)->errors());
  return profile;
}

}  // namespace

Result<Profile> load_profile(const std::string& name_or_path, const std::string& folder) {
  static RememberedFiles<Profile> remembered;
  const bool path = is_path(name_or_path);
  if (!path && (!is_profile(name_or_path) || !DataFolder(folder, "profile").has(name_or_path))) {
    return unknown_profile(name_or_path, folder);
  }
  const std::string file = path ? name_or_path : fmt::format("{}/{}.json", folder, name_or_path);
  const std::string hosts = folder + "/hosts.json";
  return remembered.get({file, hosts}, [&] { return read_with_hosts(file, hosts); });
}

Rows GemmSample::columns() {
  using F = GemmSample;
  static constexpr Row all[] = {row<&F::role>("role"),
                                row<&F::batch>("batch"),
                                row<&F::m>("m"),
                                row<&F::n>("n"),
                                row<&F::k>("k"),
                                row<&F::output_bytes>("output_bytes"),
                                row<&F::accumulate>("accumulate"),
                                row<&F::efficiency>("median").within(kLeastFactor, 10)};
  return rows_of<F>(all);
}

Rows AttentionSample::columns() {
  using F = AttentionSample;
  static constexpr Row all[] = {row<&F::backward>("pass").named(words<"forward", "backward">),
                                row<&F::batch>("batch"),
                                row<&F::heads>("heads"),
                                row<&F::kv_heads>("kv_heads"),
                                row<&F::sequence>("sequence"),
                                row<&F::head_dim>("head_dim"),
                                row<&F::causal>("causal"),
                                row<&F::efficiency>("median").within(kLeastFactor, 10)};
  return rows_of<F>(all);
}

}  // namespace stepcast
