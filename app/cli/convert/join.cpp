// loadline join: ends a conversion that several processes wrote, or whose last step was interrupted.
#include "app/cli/convert/join.h"

#include "app/cli/base/commands.h"
#include "app/cli/convert/written_files.h"
#include "core/base/text.h"
#include "exporters/writer/join.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

int run_join(const Context& context, const std::string& out, bool force) {
  Progress progress(context.stop);
  WriteReport report;
  {
    const ProgressLine line(context, "verifying", progress);
    report = join_parts(out, force, progress);
  }
  if (context.json) {
    print_json({{"files", files_json(report)},
                {"bytes_read", report.bytes_read},
                {"seconds", report.seconds},
                {"verified", report.verified}});
    return kDone;
  }
  print_files(report);
  fmt::print("{} read back and in place, in {}\n", counted(report.files.size(), "file"),
             format_seconds(report.seconds));
  return kDone;
}

Action setup_join(CLI::App& app) {
  struct Flags {
    std::string out;
    bool force = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("OUT", flags->out, "the output of the conversion")->required();
  app.add_flag("--force", flags->force, "replace existing output");
  return [flags](Context& context) { return run_join(context, flags->out, flags->force); };
}

}  // namespace loadline::cli
