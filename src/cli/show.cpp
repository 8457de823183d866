// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "report/catalog.h"

namespace stepcast::cli {
namespace {

struct ShowFlags {
  OutputOptions output;
  std::string filter;
  std::string data;
};

int run_show(const ShowFlags& flags, const std::string& topic) {
  Output output(Worth::kNothing);
  output.plan("-o", flags.output.file);
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  const auto listing = list_catalog(topic, data->folders, flags.filter);
  if (!listing) return report_errors(listing.error());
  const std::string& format = flags.output.format;
  if (format == "json") {
    output.set_main(flags.output, listing->json);
  } else if (format == "csv") {
    output.set_main(flags.output, listing->table.csv());
  } else {
    output.set_main(flags.output,
                    format == "md" ? listing->table.markdown() : listing->table.text());
  }
  return output.commit();
}

}  // namespace

std::vector<Command> add_show(CommandLine program) {
  CommandLine show = program.add_command("show", "list what ships");
  show.footer("Example: stepcast show models llama");
  std::vector<Command> out;
  for (const CatalogTopic& topic : catalog_topics()) {
    auto flags = std::make_shared<ShowFlags>();
    CommandLine app = show.add_command(topic.name, topic.help);
    app.footer(fmt::format("Example: stepcast show {} --format json", topic.name));
    app.add("FILTER", flags->filter, "only names that contain this");
    add_output_flags(app, flags->output, {"table", "json", "csv", "md"});
    add_data_flag(app, flags->data);
    out.push_back({app, [flags, topic] { return run_show(*flags, topic.name); }});
  }
  return out;
}

}  // namespace stepcast::cli
