// loadline clean: removes what interrupted conversions left in a folder.
#include "app/cli/base/commands.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/writer/work_folder.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct CleanFlags {
  std::string folder;
  bool dry_run = false;
  std::uint64_t discard = 0;  // bytes that may be lost; 0: none
};

// Why remains stay, or nothing.
std::string reason_to_keep(const Remains& remains, const CleanFlags& flags) {
  if (remains.alive) return "a process is writing it";
  if (remains.consumed == 0 || remains.consumed == flags.discard) return {};
  return fmt::format(
      "it holds the only copy of {} bytes ({}) of a model that was being consumed; continue with "
      "convert --consume --resume, or lose them with --discard-data {}",
      remains.consumed, format_bytes(remains.consumed), remains.consumed);
}

std::string output_of(const Remains& remains) {
  if (!remains.record || remains.record->files.empty()) return {};
  return remains.record->files.back().target;
}

std::string describe(const Remains& remains) {
  const std::string output = output_of(remains);
  return fmt::format(
      "{}: {}{}", safe_display(std::filesystem::path(remains.path).filename().string()),
      format_bytes(remains.written),
      output.empty() ? std::string() : fmt::format(" of an output with '{}'", safe_display(output)));
}

int clean(const Context& context, const CleanFlags& flags) {
  Json removed = Json::array(), kept = Json::array();
  for (const Remains& remains : find_remains(flags.folder)) {
    const std::string reason = reason_to_keep(remains, flags);
    if (reason.empty() && !flags.dry_run) remove_remains(remains, true);
    Json row = {{"path", json_text(remains.path)},
                {"output", json_text(output_of(remains))},
                {"bytes", remains.written},
                {"consumed_bytes", remains.consumed}};
    if (!reason.empty()) row["reason"] = json_text(reason);
    (reason.empty() ? removed : kept).push_back(std::move(row));
    if (context.json) continue;
    if (reason.empty())
      fmt::print("{} {}\n", flags.dry_run ? "would remove" : "removed", describe(remains));
    else
      fmt::print("kept {}\n  {}\n", describe(remains), reason);
  }
  const int code = kept.empty() ? kDone : kFailed;
  if (context.json)
    print_json({{"dry_run", flags.dry_run}, {"removed", std::move(removed)}, {"kept", std::move(kept)}});
  else if (removed.empty() && kept.empty())
    fmt::print("Nothing to remove: no conversion was interrupted here.\n");
  return code;
}

}  // namespace

Action setup_clean(CLI::App& app) {
  auto flags = std::make_shared<CleanFlags>();
  app.add_option("FOLDER", flags->folder, "the output folder, or the folder of a single output file")
      ->required();
  app.add_flag("--dry-run", flags->dry_run, "list what would be removed");
  app.add_option("--discard-data", flags->discard,
                 "also remove remains that hold the only copy of exactly this many bytes")
      ->check(CLI::Range(std::int64_t{1}, kMostNumber))
      ->type_name("BYTES");
  return [flags](Context& context) { return clean(context, *flags); };
}

}  // namespace loadline::cli
