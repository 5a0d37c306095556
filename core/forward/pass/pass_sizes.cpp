// Looks names up in ForwardGraph::sizes.
#include "core/forward/pass/pass_sizes.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace loadline {
namespace {

std::string names_text(const ForwardGraph& graph) {
  constexpr std::size_t kMost = 20;
  if (graph.sizes.empty()) return "it has none";
  std::string text = "it has ";
  for (std::size_t i = 0; i < std::min(graph.sizes.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + safe_display(graph.sizes[i].name, 60);
  if (graph.sizes.size() > kMost) text += fmt::format(" and {} more", graph.sizes.size() - kMost);
  return text;
}

const NamedSize& size_named(const ForwardGraph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.sizes, name, &NamedSize::name);
  if (found == graph.sizes.end())
    throw Error(ErrorCode::usage, "the file has no size that is called '{}'; {}", safe_display(name, 60),
                names_text(graph));
  return *found;
}

}  // namespace

std::vector<std::uint64_t> symbol_values(const ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past,
                                         std::span<const SizeChoice> choices) {
  std::vector<std::uint64_t> values = symbol_values(graph, batch, sequence, past);
  std::vector<const SizeChoice*> chosen(values.size(), nullptr);
  for (const SizeChoice& choice : choices) {
    const SizePoly& taken_as = size_named(graph, choice.name).taken_as;
    const std::optional<SymbolId> symbol = taken_as.as_symbol();
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
  return values;
}

std::vector<std::string> sizes_left_at_1(const ForwardGraph& graph, std::span<const SizeChoice> choices) {
  std::vector<std::string> names;
  for (const NamedSize& size : graph.sizes) {
    const std::optional<SymbolId> symbol = size.taken_as.as_symbol();
    const auto is_chosen = [&](const SizeChoice& choice) { return choice.name == size.name; };
    if (symbol && *symbol > kPast && std::ranges::none_of(choices, is_chosen)) names.push_back(size.name);
  }
  return names;
}

bool depends_on_tokens(const ForwardGraph& graph) {
  const auto depends = [](const SizePoly& size) {
    return size.mentions(kBatch) || size.mentions(kSequence) || size.mentions(kPast);
  };
  return std::ranges::any_of(graph.values, [&](const Value& value) {
    return value.shape && std::ranges::any_of(*value.shape, depends);
  });
}

}  // namespace loadline
