// Controls that follow what the chosen method knows, and what it is judged by.
#include "app/gui/panels/plan_controls.h"
#include "app/gui/panels/plan_values.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"
#include "core/load/storage_cast.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

constexpr float kBeforeField = 10;
constexpr std::uint64_t kMB = 1'000'000, kGB = 1'000'000'000;

// A value and what it is called; figures without a name are sizes.
struct Named {
  std::uint64_t value = 0;
  std::string_view name = {};
};
constexpr std::array<Named, 6> kLimits = {{{0, "one tensor"},
                                           {kGB, "1 GB"},
                                           {4 * kGB, "4 GB"},
                                           {10 * kGB, "10 GB"},
                                           {40 * kGB, "40 GB"},
                                           {UINT64_MAX, "all of it"}}};
constexpr std::array<Named, 6> kShards = {{{0, "as they are"},
                                           {500 * kMB, "500 MB"},
                                           {kGB, "1 GB"},
                                           {2 * kGB, "2 GB"},
                                           {5 * kGB, "5 GB"},
                                           {10 * kGB, "10 GB"}}};
constexpr std::array<Named, 5> kFlushes = {{{0, "at once"},
                                            {10 * kMB, "at 10 MB"},
                                            {50 * kMB, "at 50 MB"},
                                            {100 * kMB, "at 100 MB"},
                                            {500 * kMB, "at 500 MB"}}};
constexpr std::array<std::string_view, 9> kCasts = {"as stored", "f32",  "f16",  "bf16", "q8_0",
                                                    "q6_k",      "q5_k", "q4_k", "q4_0"};

// One of `names`, or a size where that is empty.
bool pick_value(const Ui& ui, std::string_view label, float width, std::span<const std::uint64_t> values,
                std::span<const std::string_view> names, std::uint64_t& value, std::string_view hint) {
  std::vector<std::string> words;
  std::size_t at = values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    words.push_back(names[i].empty() ? format_bytes(values[i]) : std::string(names[i]));
    if (values[i] == value) at = i;
  }
  const std::vector<std::string_view> labels(words.begin(), words.end());
  const auto picked = labelled_combo(ui, label, width, at < values.size() ? words[at] : format_bytes(value),
                                     labels, at, hint);
  if (picked) value = values[*picked];
  return picked.has_value();
}

template <std::size_t N>
bool pick_size(const Ui& ui, std::string_view label, float width, const std::array<Named, N>& rows,
               std::uint64_t& value, std::string_view hint) {
  std::array<std::uint64_t, N> values = {};
  std::array<std::string_view, N> names = {};
  for (std::size_t i = 0; i < N; ++i) values[i] = rows[i].value, names[i] = rows[i].name;
  return pick_value(ui, label, width, values, names, value, hint);
}

template <std::size_t N>
bool pick_size(const Ui& ui, std::string_view label, float width, const std::array<std::uint64_t, N>& values,
               std::uint64_t& value, std::string_view hint) {
  std::array<std::string_view, N> names = {};
  if (values.front() == 0) names.front() = "none";
  return pick_value(ui, label, width, values, names, value, hint);
}

bool pick_slots(const Ui& ui, std::uint32_t& slots) {
  std::vector<std::string> words;
  for (const std::uint32_t count : kRingSlots) words.push_back(std::to_string(count));
  const std::vector<std::string_view> labels(words.begin(), words.end());
  const auto at =
      static_cast<std::size_t>(std::find(kRingSlots.begin(), kRingSlots.end(), slots) - kRingSlots.begin());
  const auto picked = labelled_combo(ui, "in slots", 64, std::to_string(slots), labels, at,
                                     "How many parts the ring has: one is filled while others are sent");
  if (picked) slots = kRingSlots[*picked];
  return picked.has_value();
}

bool pick_cast(const Ui& ui, std::optional<DType>& cast) {
  const std::string current = cast ? std::string(dtype_info(*cast).name) : std::string(kCasts[0]);
  std::size_t at = 0;
  for (std::size_t i = 1; i < kCasts.size(); ++i)
    if (cast && find_cast(kCasts[i]) == *cast) at = i;
  const auto picked = labelled_combo(ui, "Cast", 112, current, kCasts, at,
                                     "What floating point weights become on their way to the device");
  if (picked) cast = *picked == 0 ? std::nullopt : std::optional(find_cast(kCasts[*picked]));
  return picked.has_value();
}

}  // namespace

std::optional<std::size_t> labelled_combo(const Ui& ui, std::string_view label, float width,
                                          std::string_view current, std::span<const std::string_view> values,
                                          std::size_t at, std::string_view hint, float behind) {
  const float combo_width = ui.px(width);
  continue_line(ui, 14, text_width(label) + ui.px(6) + combo_width + behind);
  if (!label.empty()) {
    ImGui::AlignTextToFramePadding();
    muted(ui, label);
    ImGui::SameLine(0, ui.px(6));
  }
  ImGui::PushID(label.data(), label.data() + label.size());
  const auto picked = combo(ui, "##value", combo_width, current, values, at);
  tooltip(ui, hint);
  ImGui::PopID();
  return picked;
}

float labelled_field_width(const Ui& ui, std::string_view label, float width) {
  return ui.px(kBeforeField + width) + (label.empty() ? 0 : text_width(label) + ui.px(6));
}

bool labelled_field(const Ui& ui, const char* id, std::string_view label, float width, TypedField& field,
                    const std::string& now, const char* empty, std::string_view hint) {
  if (!field.editing) field.typed = now;
  continue_line(ui, kBeforeField, labelled_field_width(ui, label, width) - ui.px(kBeforeField));
  if (!label.empty()) {
    ImGui::AlignTextToFramePadding();
    muted(ui, label);
    ImGui::SameLine(0, ui.px(6));
  }
  ImGui::SetNextItemWidth(ui.px(width));
  const bool entered =
      ImGui::InputTextWithHint(id, empty, &field.typed, ImGuiInputTextFlags_EnterReturnsTrue);
  field.editing = ImGui::IsItemActive();
  const bool left = ImGui::IsItemDeactivatedAfterEdit();
  if (!field.editing) tooltip(ui, hint);
  return entered || left;
}

std::string typed_size(const std::optional<std::uint64_t>& bytes) {
  if (!bytes) return "";
  if (*bytes > 0 && *bytes % kGiB == 0) return fmt::format("{}GiB", *bytes / kGiB);
  if (*bytes > 0 && *bytes % kMiB == 0) return fmt::format("{}MiB", *bytes / kMiB);
  return std::to_string(*bytes);
}

void method_options(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  PlanChoice choice = document.choice();
  MethodOptions& options = choice.options;
  const MethodTraits& traits = find_method(choice.method).traits;
  bool changed = false;
  if (traits.ring) {
    changed |= pick_size(ui, "Staging ring", 116, kRingSizes, options.staging_bytes,
                         "Of the whole ring of pinned memory");
    changed |= pick_slots(ui, options.slots);
  }
  if (traits.limit)
    changed |= pick_size(ui, "Buffer", 116, kLimits, options.memory_limit,
                         "What the streamer may read ahead into host memory");
  if (traits.shards)
    changed |= pick_size(ui, "Shards", 126, kShards, options.shard_bytes,
                         "As if the model were saved again in files of at most so many bytes");
  if (traits.flushes) {
    changed |= pick_size(ui, "Staging is sent", 122, kFlushes, options.flush_bytes,
                         "Staging buffers wait for so many bytes before they are sent and freed");
    continue_line(ui, 14, ui.px(150));
    changed |= checkbox(ui, "Ties prepacked twice", &options.doubled_ties);
  }
  // what is chosen for others shows, too: it is why this one cannot be done
  if (traits.casts || options.cast) changed |= pick_cast(ui, options.cast);
  if (!choice.first_token)
    changed |= pick_size(ui, "Activations", 112, kActivationSizes, options.activation_bytes,
                         "Allocated on the device, where the method allocates them");
  if (changed) workspace.attempt([&] { document.set_plan(choice); });
}

void MemoryControls::draw(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  narrow_ = ImGui::GetContentRegionAvail().x < ui.px(840);
  draw_memory(workspace, ui);
  draw_device(workspace, ui);
  if (document.choice().memory == MemoryKind::unified) {
    draw_budget(workspace, ui, "##unified", "Budget", unified_, &Budget::unified);
  } else {
    draw_budget(workspace, ui, "##device", "Budget", device_, &Budget::device);
    draw_budget(workspace, ui, "##host", "host", host_, &Budget::host);
  }
  draw_allocator(workspace, ui);
}

void MemoryControls::draw_memory(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr std::array<std::string_view, 2> kKinds = {"Discrete", "Unified"};
  const auto before = static_cast<std::size_t>(document.choice().memory);
  const std::size_t now = segmented(ui, "memory", kKinds, before);
  tooltip(ui, "Whether the device has memory of its own, or one memory holds everything");
  if (now != before)
    workspace.attempt(
        [&] { document.set_plan(with_memory(document.choice(), static_cast<MemoryKind>(now))); });
}

void MemoryControls::draw_device(Workspace& workspace, const Ui& ui) const {
  Document& document = workspace.document();
  std::vector<std::string_view> labels = {"none"};
  std::size_t at = 0;
  for (const DevicePreset& preset : workspace.shared.presets) {
    if (preset.id == document.choice().preset) at = labels.size();
    labels.push_back(preset.name);
  }
  const auto picked = labelled_combo(
      ui, "Device", 150, at == 0 ? "any" : labels[at], labels, at,
      at == 0 ? "Fills in the kind of memory, the budget and the rates of a device" : labels[at]);
  if (!picked) return;
  PlanChoice choice = document.choice();
  if (*picked == 0)
    choice.preset.clear(), choice.budget = {};
  else
    choice = on_device(choice, workspace.shared.presets[*picked - 1]);
  workspace.attempt([&] { document.set_plan(choice); });
}

void MemoryControls::draw_allocator(Workspace& workspace, const Ui& ui) const {
  Document& document = workspace.document();
  std::vector<std::string_view> labels;
  std::size_t at = 0;
  for (std::size_t i = 0; i < allocators().size(); ++i) {
    labels.push_back(allocators()[i].id);
    if (allocators()[i].model == document.choice().options.allocator) at = i;
  }
  const auto picked = labelled_combo(ui, narrow_ ? "" : "Allocator", 88, labels[at], labels, at,
                                     fmt::format("Allocator: {}", allocators()[at].summary));
  if (!picked) return;
  PlanChoice choice = document.choice();
  choice.options.allocator = allocators()[*picked].model;
  workspace.attempt([&] { document.set_plan(choice); });
}

void MemoryControls::draw_budget(Workspace& workspace, const Ui& ui, const char* id, std::string_view label,
                                 TypedField& field, std::optional<std::uint64_t> Budget::*limit) const {
  Document& document = workspace.document();
  PlanChoice choice = document.choice();
  if (!labelled_field(ui, id, label, narrow_ ? 66 : 84, field, typed_size(choice.budget.*limit), "no limit",
                      "What may be held there, such as 8GiB or 24GB; empty: as much as it takes"))
    return;
  workspace.attempt([&] {
    choice.budget.*limit =
        field.typed.empty() ? std::nullopt : std::optional(parse_size(field.typed, "budget"));
    document.set_plan(choice);
  });
}

}  // namespace loadline::gui
