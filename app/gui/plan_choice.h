// What the user chose for planning, and what projections are made of it. No ImGui.
#pragma once

#include "app/report/plan_page.h"
#include "app/report/plan_rows.h"
#include "core/load/rates.h"
#include "core/load/targets.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// The order that somebody arranged by hand or read from a file.
inline constexpr std::string_view kCustomOrder = "custom";

// A change plans anew.
struct PlanChoice {
  std::string method = "staged_ring";
  std::string order = "file";  // of the table, or kCustomOrder
  bool every_order = false;    // the comparison has a row for each order, not for the chosen one alone
  MethodOptions options = {};  // its placement, spaces and costs follow from what is below
  // Where weights go, at most one of them; none: to the device.
  std::optional<std::uint64_t> gpu_layers = {};
  std::optional<MemoryMap> memory_map = {};
  std::vector<PlaceRule> place = {};
  std::string preset = {};  // whose costs count; empty: none
  MemoryKind memory = MemoryKind::discrete;
  Budget budget = {};
  bool first_token = false;  // the forward pass chosen follows the load
};

// Whether weights go to the same places of one model. An automatic map counts bytes as cast.
bool same_placement(const PlanChoice& a, const PlanChoice& b);
// Whether the load is the same, and whether the comparison is.
bool same_load(const PlanChoice& a, const PlanChoice& b);
bool same_comparison(const PlanChoice& a, const PlanChoice& b);
// `choice` on that device: its kind of memory, and its memory as the budget.
PlanChoice on_device(PlanChoice choice, const DevicePreset& preset);
// `choice` with the other kind of memory; a budget goes along where it has a meaning.
PlanChoice with_memory(PlanChoice choice, MemoryKind memory);

// Whether some weights may go elsewhere than to the device; and `choice` without that.
bool has_placement(const PlanChoice& choice);
PlanChoice without_placement(PlanChoice choice);
// Throws Error{usage} for a rule that cannot be read or that no tensor matches.
Placement choice_placement(const MetaGraph& graph, const PlanChoice& choice);
// "name:*experts*=host; layer:0-3=disk", and back. Throws Error{usage}.
std::string place_text(std::span<const PlaceRule> rules);
std::vector<PlaceRule> parse_place_text(std::string_view text);

// A choice with what it refers to: enough for a job.
struct PlanTask {
  MetaGraphPtr graph;
  PlanChoice choice;
  std::optional<DevicePreset> preset = {};
  std::optional<MeasuredRates> rates = {};  // absent: assumed ones
  std::shared_ptr<const StorageOrder> custom = {};
};
// With a pass the activations are its own, not a figure that somebody chose. Throws as choice_placement().
MethodOptions task_options(const PlanTask& task, bool with_pass);
OrderChoice task_order(const PlanTask& task);
report::RowFrame task_frame(const PlanChoice& choice, bool with_pass);

// The methods in the order chosen, or in every one. Throws what compare_rows() does.
std::vector<report::PlanRow> compare_methods(const PlanTask& task, const ForwardPass* pass,
                                             Progress& progress);

// What a page of the comparison says of the model and of what was chosen.
report::PageText task_page_text(const PlanTask& task);

// What the table of the comparison sorts by.
enum class CompareColumn : std::uint8_t {
  table,  // as the methods are listed
  method,
  order,
  held,  // what one memory must hold
  device,
  host,
  page_cache,
  staging,
  unified,
  jumps,
  time,
  verdict,
};
inline constexpr std::size_t kCompareColumns = 12;
std::string_view compare_column_name(CompareColumn column);
struct CompareSort {
  CompareColumn column = CompareColumn::table;
  bool ascending = true;
  bool operator==(const CompareSort&) const = default;
};
// Positions in `rows`. What cannot be done comes last but among names; ties keep their order.
std::vector<std::size_t> sorted_rows(std::span<const report::PlanRow> rows, const CompareSort& sort);

// How the comparison is shown; `order` is where the order itself is arranged.
enum class CompareView : std::uint8_t { table, curves, overlay, order };
inline constexpr std::size_t kCompareViews = 4;
std::string_view compare_view_name(CompareView view);

}  // namespace loadline::gui
