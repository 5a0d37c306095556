// The words of a script that are options of a load.
#include "app/gui/script_options.h"

#include <algorithm>
#include <array>
#include <utility>

namespace loadline::gui {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kFormerWords = {
    {{"ring", "staging"},
     {"shards", "shard_size"},
     {"limit", "runai_buffer"},
     {"gpu-layers", "gpu_layers"},
     {"max-memory", "auto_map"},
     {"preset", "target"},
     {"device-budget", "device_budget"},
     {"host-budget", "host_budget"},
     {"max-peak", "require_peak"}}};

}  // namespace

std::string_view renamed_option(std::string_view word) {
  const auto found = std::find_if(kFormerWords.begin(), kFormerWords.end(),
                                  [&](const auto& row) { return row.first == word; });
  return found == kFormerWords.end() ? std::string_view() : found->second;
}

void play_option(Workspace& workspace, std::string_view id, const std::string& word) {
  workspace.document().set_option(id, word);
}

}  // namespace loadline::gui
