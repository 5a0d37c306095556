// One sweep over the operators; sizes that the file names itself.
#include "core/forward/pass/lifetimes.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/core.h>

namespace loadline::forward {

// --- Finds lifetimes and usage in one sweep over the operators.

namespace {

std::size_t position(graph::ValueId id) { return static_cast<std::size_t>(id); }

std::uint64_t added(std::uint64_t total, std::uint64_t bytes) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const auto sum = checked_add(total, bytes);
  if (!sum || *sum > kMost) throw Error(ErrorCode::limit, "the values of a forward pass exceed 2^62 bytes");
  return *sum;
}

}  // namespace

std::vector<OpRange> lifetimes(const graph::ForwardGraph& graph) {
  constexpr std::uint32_t kNever = UINT32_MAX;
  // the owner of each value's memory; owners come before the values that share with them
  std::vector<std::uint32_t> owner(graph.values.size());
  for (std::uint32_t i = 0; i < owner.size(); ++i) {
    const std::optional<graph::ValueId>& of = graph.values[i].memory_of;
    owner[i] = of ? owner[position(*of)] : i;
  }
  std::vector<OpRange> lives(graph.values.size(), {kNever, 0});
  const auto use = [&](graph::ValueId id, std::uint32_t first, std::uint32_t end) {
    OpRange& range = lives[owner[position(id)]];
    range.first = std::min(range.first, first);
    range.end = std::max(range.end, end);
  };
  const auto ops = static_cast<std::uint32_t>(graph.ops.size());
  for (const graph::ValueId id : graph.inputs) use(id, 0, 0);
  for (std::uint32_t i = 0; i < ops; ++i) {
    const graph::Op& op = graph.ops[i];
    for (const auto* ids : {&op.inputs, &op.outputs, &op.temporaries, &op.held})
      for (const graph::ValueId id : *ids) use(id, i, i + 1);
  }
  for (const graph::ValueId id : graph.outputs) use(id, ops, ops);
  for (std::size_t i = 0; i < lives.size(); ++i)
    if (lives[i].first == kNever || graph.values[i].lane == graph::Lane::cache) lives[i] = {};
  return lives;
}

std::vector<std::optional<std::uint64_t>> value_sizes(const graph::ForwardGraph& graph,
                                                      std::span<const std::uint64_t> symbols) {
  std::vector<std::optional<std::uint64_t>> sizes;
  sizes.reserve(graph.values.size());
  for (const graph::Value& value : graph.values) {
    const auto bytes = graph::value_bytes(value);
    sizes.push_back(bytes ? bytes->evaluate(symbols) : std::nullopt);
    if (bytes && !sizes.back())
      throw Error(ErrorCode::limit, "the size of value '{}' is negative or does not fit in 64 bits",
                  safe_display(value.name, 100));
  }
  return sizes;
}

std::vector<LaneBytes> forward_usage(const graph::ForwardGraph& graph, std::span<const OpRange> lives,
                                     std::span<const std::optional<std::uint64_t>> sizes) {
  // bytes that begin and end with each operator; if the total does not overflow, no sum below does
  std::vector<LaneBytes> begins(graph.ops.size() + 1), ends(graph.ops.size() + 1);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const graph::Value& value = graph.values[i];
    if (value.memory_of || !sizes[i]) continue;
    total = added(total, *sizes[i]);
    if (lives[i].empty()) continue;
    const auto member =
        value.lane == graph::Lane::temporary ? &LaneBytes::temporaries : &LaneBytes::activations;
    begins[lives[i].first].*member += *sizes[i];
    ends[lives[i].end].*member += *sizes[i];
  }
  std::vector<LaneBytes> usage(graph.ops.size());
  std::vector<bool> written(graph.values.size(), false);
  LaneBytes alive;
  for (std::size_t i = 0; i < usage.size(); ++i) {
    alive.activations += begins[i].activations;
    alive.activations -= ends[i].activations;
    alive.temporaries += begins[i].temporaries;
    alive.temporaries -= ends[i].temporaries;
    for (const graph::ValueId id : graph.ops[i].outputs) {
      const graph::Value& value = graph.value(id);
      if (value.lane != graph::Lane::cache || value.memory_of || written[position(id)]) continue;
      written[position(id)] = true;
      alive.cache += sizes[position(id)].value_or(0);
    }
    usage[i] = alive;
  }
  return usage;
}

ForwardPeak forward_peak(const graph::ForwardGraph& graph, std::span<const LaneBytes> usage,
                         std::span<const std::optional<std::uint64_t>> sizes) {
  ForwardPeak peak;
  for (std::uint32_t i = 0; i < usage.size(); ++i)
    if (usage[i].passing() > peak.bytes) peak.bytes = usage[i].passing(), peak.op = i;
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const graph::Value& value = graph.values[i];
    if (value.memory_of) continue;
    if (!sizes[i]) ++peak.unknown;
    if (value.lane == graph::Lane::cache) peak.cache_bytes = added(peak.cache_bytes, sizes[i].value_or(0));
  }
  return peak;
}

std::vector<allocators::Allocation> allocations_of(const graph::ForwardGraph& graph,
                                                   std::span<const OpRange> lives,
                                                   std::span<const std::optional<std::uint64_t>> sizes) {
  std::vector<allocators::Allocation> result(lives.size());
  for (std::size_t i = 0; i < lives.size(); ++i)
    result[i] = {lives[i].first + 1, lives[i].end + 1, sizes[i].value_or(0),
                 graph.values[i].lane != graph::Lane::temporary};
  for (const auto* ids : {&graph.inputs, &graph.outputs})
    for (const graph::ValueId id : *ids) result[position(id)].planned = false;
  for (const graph::ValueId id : graph.inputs)
    if (allocators::Allocation& input = result[position(id)]; !lives[position(id)].empty()) input.first = 0;
  return result;
}

// --- Looks names up in ForwardGraph::sizes.

namespace {

std::string names_text(const graph::ForwardGraph& graph) {
  constexpr std::size_t kMost = 20;
  if (graph.sizes.empty()) return "it has none";
  std::string text = "it has ";
  for (std::size_t i = 0; i < std::min(graph.sizes.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + safe_display(graph.sizes[i].name, 60);
  if (graph.sizes.size() > kMost) text += fmt::format(" and {} more", graph.sizes.size() - kMost);
  return text;
}

const graph::NamedSize& size_named(const graph::ForwardGraph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.sizes, name, &graph::NamedSize::name);
  if (found == graph.sizes.end())
    throw Error(ErrorCode::usage, "the file has no size that is called '{}'; {}", safe_display(name, 60),
                names_text(graph));
  return *found;
}

}  // namespace

std::vector<std::uint64_t> symbol_values(const graph::ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past,
                                         std::span<const SizeChoice> choices) {
  std::vector<std::uint64_t> values = graph::symbol_values(graph, batch, sequence, past);
  std::vector<const SizeChoice*> chosen(values.size(), nullptr);
  for (const SizeChoice& choice : choices) {
    const graph::SizePoly& taken_as = size_named(graph, choice.name).taken_as;
    const std::optional<graph::SymbolId> symbol = taken_as.as_symbol();
    const auto taken = taken_as.constant();
    if (!symbol && taken && static_cast<std::uint64_t>(*taken) == choice.size) continue;  // at opening
    if (!symbol && taken)
      throw Error(ErrorCode::usage, "'{}' is the side of a picture, which was taken as {} pixels at opening",
                  safe_display(choice.name, 60), taken_as.text({}))
          .with({"picture_side", std::to_string(choice.size)});
    if (!symbol)
      throw Error(ErrorCode::usage, "'{}' is {}: choose those", safe_display(choice.name, 60),
                  taken_as.text(graph.symbols));
    const SizeChoice*& before = chosen[static_cast<std::size_t>(*symbol)];
    if (before != nullptr && before->size != choice.size)
      throw Error(ErrorCode::usage, "'{}' and '{}' are the same size, {}: it cannot be {} and {}",
                  safe_display(before->name, 60), safe_display(choice.name, 60),
                  safe_display(taken_as.text(graph.symbols), 60), before->size, choice.size);
    before = &choice;
    values[static_cast<std::size_t>(*symbol)] = choice.size;
  }
  return graph::with_chosen(graph, std::move(values));
}

std::vector<std::string> sizes_left_at_1(const graph::ForwardGraph& graph,
                                         std::span<const SizeChoice> choices) {
  std::vector<std::string> names;
  for (const graph::NamedSize& size : graph.sizes) {
    const std::optional<graph::SymbolId> symbol = size.taken_as.as_symbol();
    const auto is_chosen = [&](const SizeChoice& choice) { return choice.name == size.name; };
    if (symbol && *symbol > graph::kPast && std::ranges::none_of(choices, is_chosen))
      names.push_back(size.name);
  }
  return names;
}

namespace {

bool any_size(const graph::ForwardGraph& graph, const std::function<bool(const graph::SizePoly&)>& is_met) {
  return std::ranges::any_of(graph.values, [&](const graph::Value& value) {
    return value.shape && std::ranges::any_of(*value.shape, is_met);
  });
}

bool mentions_tokens(const graph::SizePoly& size) {
  return size.mentions(graph::kSequence) || size.mentions(graph::kPast);
}

}  // namespace

bool depends_on_request(const graph::ForwardGraph& graph) {
  return any_size(graph, [](const graph::SizePoly& size) {
    return size.mentions(graph::kBatch) || mentions_tokens(size);
  });
}

bool depends_on_tokens(const graph::ForwardGraph& graph) { return any_size(graph, mentions_tokens); }

}  // namespace loadline::forward
