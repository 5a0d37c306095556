// Synthesises the demo preset where nobody else keeps files.
#include "app/gui/session_demo.h"

#include "core/base/error.h"
#include "core/forward/families.h"
#include "core/forward/presets.h"
#include "exporters/synth.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <stdlib.h>

namespace loadline::gui {
namespace {

constexpr std::string_view kPreset = "demo";
constexpr std::uint64_t kSeed = 1;

}  // namespace

DemoFolder::DemoFolder() {
  std::error_code failed;
  const std::filesystem::path base = std::filesystem::temp_directory_path(failed);
  path_ = ((failed ? std::filesystem::path("/tmp") : base) / "loadline-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw system_error(path_, "create", errno);
}

DemoFolder::~DemoFolder() {
  std::error_code ignored;  // what cannot be removed stays in the temporary folder
  std::filesystem::remove_all(path_, ignored);
}

std::string write_demo_model(const std::string& folder, Progress& progress) {
  const std::filesystem::path target = std::filesystem::path(folder) / "demo-llama";
  if (std::filesystem::exists(target / "config.json")) return target.string();
  const Preset* preset = find_preset(kPreset);
  if (preset == nullptr) throw Error(ErrorCode::unsupported, "this build carries no demo model");
  synthesize(config_graph(preset->config_json, "demo/config.json"), target.string(),
             {.seed = kSeed, .max_shard_bytes = preset->max_shard_bytes, .overwrite = true}, progress);
  return target.string();
}

}  // namespace loadline::gui
