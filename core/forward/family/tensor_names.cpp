// Evaluates expressions in names; tries a name with each prefix and each ending in turn.
#include "core/forward/family/tensor_names.h"

#include "core/base/text.h"

#include <algorithm>

namespace loadline::forward {

std::string expand_name(std::string_view name, const assets::AssetPlace& place, const assets::Scope& scope) {
  std::string result;
  while (true) {
    const std::size_t open = name.find('{');
    result += name.substr(0, open);
    if (open == std::string_view::npos) return result;
    const std::size_t close = name.find('}', open);
    if (close == std::string_view::npos) place.fail("a '{' without its '}'");
    const std::string_view inside = name.substr(open + 1, close - open - 1);
    // usually the name of a loop variable, which needs no parser
    assets::Datum value = scope.name(inside);
    if (value.null()) value = assets::Expression::parse(inside, place).evaluate(scope);
    if (value.number() == nullptr)
      place.fail("{{{}}} is {}: a whole number expected", safe_display(inside, 40), value.shown());
    result += std::to_string(*value.number());
    name.remove_prefix(close + 1);
  }
}

std::vector<std::string> prefixes_in(const graph::MetaGraph& graph, std::vector<std::string> prefixes) {
  constexpr std::size_t kMost = 16;  // each is tried for every tensor
  constexpr std::string_view kParts[] = {"language_model.", "text_model."};
  const auto add = [&](std::string_view prefix) {
    if (prefixes.size() < kMost && std::ranges::find(prefixes, prefix) == prefixes.end())
      prefixes.emplace_back(prefix);
  };
  for (const graph::Tensor& tensor : graph.tensors) {
    const std::string_view name = tensor.name.view();
    for (const std::string_view part : kParts) {
      const std::size_t at = name.find(part);
      if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) continue;
      const std::size_t end = at + part.size();
      add(name.substr(0, end));
      if (name.substr(end).starts_with("model.")) add(name.substr(0, end + 6));
    }
  }
  return prefixes;
}

Header::Header(const graph::MetaGraph& graph, NameVariants variants)
    : graph_(graph),
      variants_(std::move(variants)),
      names_(graph.tensors.size()),
      claimed_(graph.tensors.size(), false) {
  const auto text_of = [&](std::uint32_t at) { return name_at(at); };
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i)
    names_.add(graph.tensors[i].name, graph.tensors[i].name.hash(), i, text_of);
  if (graph.logical.empty()) return;
  packed_.resize(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.logical.size(); ++i) {
    const graph::LogicalTensor& weight = graph.logical[i];
    packed_[graph::index(weight.codes)] = i;
    // where codes have the weight's name, they are found by it already
    names_.add(weight.name, weight.name.hash(), static_cast<std::uint32_t>(graph.tensors.size()) + i,
               text_of);
  }
}

std::string_view Header::name_at(std::uint32_t at) const {
  const std::size_t tensors = graph_.tensors.size();
  return at < tensors ? graph_.tensors[at].name.view() : graph_.logical[at - tensors].name.view();
}

std::optional<graph::TensorId> Header::find(const std::string& name) const {
  if (const auto id = find_prefixed(name)) return id;
  for (const auto& [ending, older] : variants_.spellings)
    if (name.ends_with(ending))
      if (const auto id = find_prefixed(name.substr(0, name.size() - ending.size()) + older)) return id;
  return std::nullopt;
}

std::optional<graph::TensorId> Header::find_prefixed(const std::string& name) const {
  if (const auto id = find_exact(name)) return id;
  for (const std::string& prefix : variants_.prefixes) {
    if (const auto id = find_exact(prefix + name)) return id;
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    if (const auto id = find_exact(rest)) return id;
    for (const std::string& other : variants_.prefixes)
      if (const auto id = find_exact(other + rest)) return id;
  }
  return std::nullopt;
}

std::optional<graph::TensorId> Header::find_exact(std::string_view name) const {
  const auto at = names_.find(name, graph::name_hash(name), [this](std::uint32_t i) { return name_at(i); });
  if (!at) return std::nullopt;
  return *at < graph_.tensors.size() ? graph::TensorId{*at}
                                     : graph_.logical[*at - graph_.tensors.size()].codes;
}

const graph::LogicalTensor* Header::packed(graph::TensorId id) const {
  return packed_.empty() || !packed_[graph::index(id)] ? nullptr
                                                       : &graph_.logical[*packed_[graph::index(id)]];
}

void Header::claim(graph::TensorId id) {
  claimed_[graph::index(id)] = true;
  if (const graph::LogicalTensor* const weight = packed(id))
    for (const graph::CompanionTensor& companion : weight->companions)
      claimed_[graph::index(companion.tensor)] = true;
}

}  // namespace loadline::forward
