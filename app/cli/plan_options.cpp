// From words of the command line to what they mean together.
#include "app/cli/plan_options.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::cli {
namespace {

// Each id once, where it comes first; "all" stands for those of the table.
template <typename Row>
std::vector<std::string> ids_of(const std::vector<std::string>& asked, std::span<const Row> table) {
  std::vector<std::string> ids;
  const auto add = [&](std::string_view id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.emplace_back(id);
  };
  for (const std::string& id : asked) {
    if (id != "all")
      add(id);
    else
      for (const Row& row : table) add(row.id);
  }
  return ids;
}

// How a page calls what was given; what only says how the answer is shown is not in it.
struct Title {
  std::string_view option;
  std::string_view title;
};
constexpr std::array<Title, 26> kTitles = {{{"--method", "methods"},
                                            {"--order", "orders"},
                                            {"--device", "device"},
                                            {"--device-budget", "device budget"},
                                            {"--host-budget", "host budget"},
                                            {"--max-peak", "most that a peak may be"},
                                            {"--cache-limit", "page cache"},
                                            {"--allocator", "allocator"},
                                            {"--memory-limit", "runai's buffer"},
                                            {"--cast", "cast"},
                                            {"--shard-size", "shards"},
                                            {"--flush", "staging is sent from"},
                                            {"--doubled-ties", "ties prepacked twice"},
                                            {"--place", "placed"},
                                            {"--gpu-layers", "layers on the device"},
                                            {"--max-memory", "filled up to"},
                                            {"--activations", "activations"},
                                            {"--batch", "batch"},
                                            {"--seq", "new tokens"},
                                            {"--past", "tokens before"},
                                            {"--dim", "sizes"},
                                            {"--profile", "profile"},
                                            {"--activation-dtype", "type of activations"},
                                            {"--cache-dtype", "type of the cache"},
                                            {"--logits", "logits"},
                                            {"--rates", "rates"}}};

}  // namespace

std::vector<const Method*> methods_of(const std::vector<std::string>& ids) {
  std::vector<const Method*> found;
  for (const std::string& id : ids_of(ids, methods())) found.push_back(&find_method(id));
  return found;
}

std::vector<std::string> order_names_of(const std::vector<std::string>& names) {
  return ids_of(names, orders());
}

void check_use(const PlanOptions& options, std::span<const Method* const> methods,
               std::span<const std::string> orders) {
  require_taken(options.given, methods);
  require_company(options.given);
  if (!options.measure.empty() && !options.memory.empty() &&
      std::find(orders.begin(), orders.end(), "optimal") == orders.end())
    throw Error(ErrorCode::usage, "--memory changes nothing of what --measure does but for --order optimal");
}

report::RowFrame frame_of(const PlanOptions& options, const std::optional<DevicePreset>& device) {
  report::RowFrame frame;
  if (!options.memory.empty())
    frame.memory = memory_kind(options.memory);
  else if (device)
    frame.memory = device->memory;
  if (device) frame.budget = device_budget(*device, frame.memory);
  const bool unified = frame.memory == MemoryKind::unified;
  if (unified && !options.host_budget.empty())
    throw Error(ErrorCode::usage,
                "unified memory has one budget: --device-budget holds the host's share, too");
  if (!options.device_budget.empty()) {
    const std::uint64_t bytes = parse_size(options.device_budget, "--device-budget");
    if (unified)
      frame.budget = {.unified = bytes};
    else
      frame.budget.device = bytes;
  }
  if (!options.host_budget.empty()) frame.budget.host = parse_size(options.host_budget, "--host-budget");
  if (!options.max_peak.empty()) frame.max_peak = parse_size(options.max_peak, "--max-peak");
  if (!options.cache_limit.empty()) frame.cache_limit = parse_size(options.cache_limit, "--cache-limit");
  return frame;
}

std::optional<report::CurveOptions> curve_of(const PlanOptions& options, bool has_pass) {
  const bool page = !options.html.empty();
  if (!options.curve && !page && options.svg.empty()) return std::nullopt;
  constexpr std::size_t kSlices = 48;
  report::CurveOptions curve;
  if (page) curve.slices = kSlices;
  const bool steps = options.axis.empty() ? has_pass : options.axis == "steps";
  curve.axis = steps ? view::CurveAxis::steps : view::CurveAxis::seconds;
  return curve;
}

report::OptionList asked_for(const PlanOptions& options, const report::RowFrame& frame) {
  report::OptionList list = {{"model", options.path},
                             {"memory", std::string(memory_kind_name(frame.memory))}};
  for (const Title& row : kTitles)
    for (const GivenOption& option : options.given)
      if (option.name == row.option)
        list.emplace_back(row.title,
                          option.values.empty() ? "yes" : fmt::format("{}", fmt::join(option.values, ", ")));
  list.emplace_back("staging ring",
                    fmt::format("{} in {}", options.method.staging, counted(options.method.slots, "slot")));
  return list;
}

}  // namespace loadline::cli
