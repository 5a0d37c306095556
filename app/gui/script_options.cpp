// The words of a script that set what is loaded, how, where to, and what follows.
#include "app/gui/script_options.h"

#include "app/gui/script_words.h"
#include "core/load/storage_cast.h"

#include <algorithm>
#include <array>

namespace loadline::gui {
namespace {

template <typename Change>
void change_plan(Workspace& workspace, Change change) {
  PlanChoice choice = workspace.document().choice();
  change(choice);
  workspace.document().set_plan(choice);
}

// DEVICE[,HOST] or none.
void set_memory_map(Workspace& workspace, const std::string& text) {
  change_plan(workspace, [&](PlanChoice& choice) {
    choice = without_placement(choice);
    if (text != "none") choice.memory_map = parse_memory_map(text, "max-memory");
  });
}

template <typename Change>
void change_forward(Workspace& workspace, Change change) {
  ForwardChoice choice = workspace.document().forward_choice();
  change(choice);
  workspace.document().set_forward(choice);
}

void set_memory(Workspace& workspace, const std::string& kind) {
  workspace.document().set_plan(with_memory(workspace.document().choice(), memory_kind(kind)));
}

void set_preset(Workspace& workspace, const std::string& id) {
  const std::vector<DevicePreset>& presets = workspace.shared.presets;
  PlanChoice choice = workspace.document().choice();
  if (id == "none")
    choice.preset.clear(), choice.budget = {};
  else
    choice =
        on_device(choice, presets[position(
                              id, presets.size(), [&](std::size_t i) { return presets[i].id; }, "device")]);
  workspace.document().set_plan(choice);
}

constexpr std::array<OptionWord, 21> kOptionWords = {{
    {"method", [](Workspace& workspace,
                  const std::string& id) { change_plan(workspace, [&](PlanChoice& c) { c.method = id; }); }},
    {"order", [](Workspace& workspace,
                 const std::string& id) { change_plan(workspace, [&](PlanChoice& c) { c.order = id; }); }},
    {"ring",
     [](Workspace& workspace, const std::string& size) {
       change_plan(workspace, [&](PlanChoice& c) { c.options.staging_bytes = parse_size(size, "ring"); });
     }},
    {"slots",
     [](Workspace& workspace, const std::string& text) {
       change_plan(workspace,
                   [&](PlanChoice& c) { c.options.slots = parse_number<std::uint32_t>(text, 1, 1024); });
     }},
    {"activations",
     [](Workspace& workspace, const std::string& size) {
       change_plan(workspace,
                   [&](PlanChoice& c) { c.options.activation_bytes = parse_size(size, "activations"); });
     }},
    {"cast",
     [](Workspace& workspace, const std::string& name) {
       change_plan(workspace, [&](PlanChoice& c) {
         c.options.cast = name == "none" ? std::nullopt : std::optional(find_cast(name));
       });
     }},
    {"shards",
     [](Workspace& workspace, const std::string& size) {
       change_plan(workspace,
                   [&](PlanChoice& c) { c.options.shard_bytes = size_or_none(size, "shards").value_or(0); });
     }},
    {"flush",
     [](Workspace& workspace, const std::string& size) {
       change_plan(workspace,
                   [&](PlanChoice& c) { c.options.flush_bytes = size_or_none(size, "flush").value_or(0); });
     }},
    {"limit",
     [](Workspace& workspace, const std::string& size) {
       change_plan(workspace, [&](PlanChoice& c) { c.options.memory_limit = parse_size(size, "limit"); });
     }},
    {"gpu-layers",
     [](Workspace& workspace, const std::string& text) {
       change_plan(workspace, [&](PlanChoice& c) {
         c = without_placement(c);
         if (text != "all") c.gpu_layers = parse_number<std::uint64_t>(text, 0, 1'000'000);
       });
     }},
    {"max-memory", set_memory_map},
    {"place",
     [](Workspace& workspace, const std::string& text) {
       change_plan(workspace, [&](PlanChoice& c) {
         c = without_placement(c);
         if (text != "none") c.place = parse_place_text(text);
       });
     }},
    {"memory", set_memory},
    {"preset", set_preset},
    {"device-budget",
     [](Workspace& workspace, const std::string& size) {
       change_plan(workspace, [&](PlanChoice& c) {
         (c.memory == MemoryKind::unified ? c.budget.unified : c.budget.device) =
             size_or_none(size, "budget");
       });
     }},
    {"host-budget",
     [](Workspace& workspace, const std::string& size) {
       if (workspace.document().choice().memory == MemoryKind::unified)
         refuse("unified memory has one budget");
       change_plan(workspace, [&](PlanChoice& c) { c.budget.host = size_or_none(size, "budget"); });
     }},
    {"allocator",
     [](Workspace& workspace, const std::string& id) {
       change_plan(workspace, [&](PlanChoice& c) { c.options.allocator = load_allocator(id); });
     }},
    {"batch",
     [](Workspace& workspace, const std::string& text) {
       change_forward(workspace,
                      [&](ForwardChoice& c) { c.batch = parse_number<std::uint64_t>(text, 1, kMostBatch); });
     }},
    {"seq",
     [](Workspace& workspace, const std::string& text) {
       change_forward(workspace, [&](ForwardChoice& c) {
         c.sequence = parse_number<std::uint64_t>(text, 1, kMostSequence);
       });
     }},
    {"past",
     [](Workspace& workspace, const std::string& text) {
       change_forward(workspace,
                      [&](ForwardChoice& c) { c.past = parse_number<std::uint64_t>(text, 0, kMostPast); });
     }},
    {"profile",
     [](Workspace& workspace, const std::string& id) {
       change_forward(workspace, [&](ForwardChoice& c) { c.options.profile = id; });
     }},
}};

}  // namespace

std::span<const OptionWord> option_words() { return kOptionWords; }

const OptionWord* find_option_word(std::string_view id) {
  const auto found = std::find_if(kOptionWords.begin(), kOptionWords.end(),
                                  [&](const OptionWord& word) { return word.id == id; });
  return found == kOptionWords.end() ? nullptr : &*found;
}

}  // namespace loadline::gui
