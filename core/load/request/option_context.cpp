// One constant for each row of the table that depends on the model.
#include "core/load/request/option_context.h"

#include "core/base/option.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

namespace loadline::load {
namespace {

// --- Sizes of the forward pass.

bool matters(const LoadContext& context, graph::SymbolId symbol) {
  return context.pass && context.pass->symbols_matter[graph::index(symbol)];
}

std::uint64_t most_tokens(const LoadContext&) { return 1 << 20; }

// Those that the file itself names, but for batch and tokens.
std::vector<std::string> size_names(const LoadContext& context) {
  std::vector<std::string> names;
  if (!context.pass) return names;
  for (const graph::NamedSize& named : context.pass->model.graph->sizes) {
    const auto symbol = named.taken_as.as_symbol();
    if (symbol && graph::index(*symbol) > graph::index(graph::kPast) && matters(context, *symbol))
      names.push_back(named.name);
  }
  return names;
}

// --- Profile and types of the forward pass.

bool by_architecture(const LoadContext& context) {
  return context.pass && context.pass->model.source == forward::ForwardSource::architecture;
}

const forward::Profile& profile_of(const PassContext& pass) {
  return pass.assets.profile(pass.model.profile);
}

std::vector<OptionWord> profiles(const LoadContext& context) {
  std::vector<OptionWord> words;
  if (context.pass)
    for (const forward::Profile& profile : context.pass->assets.profiles)
      if (forward::runs(profile, context.pass->graph)) words.push_back({profile.id, profile.id});
  return words;
}

template <std::optional<graph::DType> forward::Profile::*Own>
std::string type_in_force(const LoadContext& context) {
  const PassContext& pass = *context.pass;
  return std::string(graph::dtype_info((profile_of(pass).*Own).value_or(pass.model.bound->dtype)).name);
}

std::string type_name(std::string_view word) {
  const std::optional<graph::DType> type = graph::dtype_named(word);
  return std::string(type ? graph::dtype_info(*type).name : word);
}

// --- Budgets.

std::string budget_words(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "no budget";
}

}  // namespace

std::string reserve_words(const LoadMemory& memory) {
  const std::optional<std::uint64_t>& budget =
      memory.budget.unified ? memory.budget.unified : memory.budget.device;
  if (memory.reserved == 0 || !budget) return {};
  return fmt::format("{} of {}: {} are kept free for the system and other programs", format_bytes(*budget),
                     format_bytes(*budget + memory.reserved), format_bytes(memory.reserved));
}

namespace in_context {

const OptionInContext sequence = {
    .applies = [](const LoadContext& context) { return matters(context, graph::kSequence); },
    .most = most_tokens};
const OptionInContext batch = {
    .applies = [](const LoadContext& context) { return matters(context, graph::kBatch); },
    .most = most_tokens};
const OptionInContext past = {
    .applies = [](const LoadContext& context) { return matters(context, graph::kPast); },
    .most = most_tokens};
const OptionInContext named_sizes = {.names = size_names};

const OptionInContext profile = {
    // there are operators of formats that no profile is for
    .applies = [](const LoadContext& context) { return !profiles(context).empty(); },
    .words = profiles,
    .in_force = [](const LoadContext& context) { return context.pass->model.profile; }};
const OptionInContext activation_type = {
    .applies = by_architecture, .shown = type_name, .in_force = type_in_force<&forward::Profile::activation>};
const OptionInContext cache_type = {
    .applies = [](const LoadContext& context) { return by_architecture(context) && context.pass->has_cache; },
    .shown = type_name,
    .in_force = type_in_force<&forward::Profile::cache>};
const OptionInContext logits = {
    .applies =
        [](const LoadContext& context) { return by_architecture(context) && context.pass->has_logits; },
    .in_force = [](const LoadContext& context) -> std::string {
      return profile_of(*context.pass).all_logits ? "all" : "last";
    }};
// One block of them stands for a pass, where none follows.
const OptionInContext activations = {
    .applies = [](const LoadContext& context) { return !context.pass_follows; }};

// This machine first, then by class, and the least memory first.
const OptionInContext target = {.words = [](const LoadContext& context) {
  std::vector<const Target*> rows;
  for (const Target& row : context.targets) rows.push_back(&row);
  const auto memory_of = [](const Target* row) {
    return row->device_bytes.value_or(row->host_bytes.value_or(0));
  };
  std::ranges::stable_sort(rows, [&](const Target* a, const Target* b) {
    const auto key = [&](const Target* row) {
      return std::tuple(row->id != kThisMachine, std::string_view(row->device_class), memory_of(row));
    };
    return key(a) < key(b);
  });
  std::vector<OptionWord> words;
  for (const Target* const row : rows)
    words.push_back({row->id, row->name, row->id == kThisMachine ? "" : row->device_class,
                     memory_of(row) == 0 ? "" : format_bytes(memory_of(row))});
  return words;
}};
const OptionInContext memory = {.in_force = [](const LoadContext& context) {
  return std::string(plan::memory_kind_name(context.memory.kind));
}};
const OptionInContext device_budget = {
    .in_force =
        [](const LoadContext& context) {
          const Budget& budget = context.memory.budget;
          return budget_words(budget.unified ? budget.unified : budget.device);
        },
    .why_in_force = [](const LoadContext& context) { return reserve_words(context.memory); }};
const OptionInContext host_budget = {
    .applies = [](const LoadContext& context) { return context.memory.kind == plan::MemoryKind::discrete; },
    .in_force = [](const LoadContext& context) { return budget_words(context.memory.budget.host); }};

// A placement begins with half of the model. What is behind the last layer counts as one more.
const OptionInContext layers = {
    .most = [](const LoadContext& context) { return context.layers ? *context.layers + 1 : UINT64_MAX; },
    .first_value = [](const LoadContext& context) { return std::to_string(context.layers.value_or(0) / 2); }};
const OptionInContext automatic_map = {.first_value = [](const LoadContext& context) {
  return print_option(OptionKind::bytes, context.memory.budget.device.value_or(context.weight_bytes / 2));
}};

}  // namespace in_context
}  // namespace loadline::load
