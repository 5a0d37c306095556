// Synthesises the demo preset in a folder of its own.
#include "app/gui/state/model/demo_model.h"

#include "core/base/error.h"
#include "core/forward/model/config_graph.h"
#include "core/forward/model/presets.h"
#include "core/io/temporary_folder.h"
#include "exporters/synth.h"

#include <filesystem>
#include <system_error>

namespace loadline::gui {
namespace {

constexpr std::string_view kPreset = "demo";
constexpr std::uint64_t kSeed = 1;

}  // namespace

std::string write_demo_model(const std::string& folder, Progress& progress) {
  const std::filesystem::path target = std::filesystem::path(folder) / "demo-llama";
  if (std::filesystem::exists(target)) return target.string();
  const Preset* preset = find_preset(kPreset);
  if (preset == nullptr) throw Error(ErrorCode::unsupported, "this build carries no demo model");
  const TemporaryFolder attempt(folder);
  const std::filesystem::path written = std::filesystem::path(attempt.path()) / target.filename();
  synthesize(config_graph(preset->config_json, "demo/config.json"), written.string(),
             {.seed = kSeed, .max_shard_bytes = preset->max_shard_bytes}, progress);
  std::error_code failed;
  std::filesystem::rename(written, target, failed);
  if (failed && !std::filesystem::exists(target))  // else another attempt was first: the same bytes
    throw system_error(target.string(), "create", failed.value());
  return target.string();
}

}  // namespace loadline::gui
