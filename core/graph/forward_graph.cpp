// Arithmetic on sizes; bytes of values; numbers for symbols.
#include "core/graph/forward_graph.h"

#include "core/graph/op_place.h"

#include <algorithm>

#include <fmt/core.h>

namespace loadline::graph {

// --- Arithmetic on polynomials in normal form.

SizePoly::SizePoly(std::int64_t constant) {
  if (constant != 0) terms_.push_back({{}, constant});
}

SizePoly SizePoly::symbol(SymbolId id) {
  SizePoly poly;
  poly.terms_.push_back({{id}, 1});
  return poly;
}

// The usual written order of terms: highest degree first, then by symbols.
std::optional<SizePoly> SizePoly::normal(std::vector<Term> terms) {
  std::ranges::sort(terms, [](const Term& a, const Term& b) {
    return a.factors.size() != b.factors.size() ? a.factors.size() > b.factors.size() : a.factors < b.factors;
  });
  SizePoly poly;
  for (Term& term : terms) {
    if (!poly.terms_.empty() && poly.terms_.back().factors == term.factors) {
      std::int64_t& held = poly.terms_.back().coefficient;
      if (__builtin_add_overflow(held, term.coefficient, &held)) return std::nullopt;
    } else {
      if (!poly.terms_.empty() && poly.terms_.back().coefficient == 0) poly.terms_.pop_back();
      poly.terms_.push_back(std::move(term));
    }
  }
  if (!poly.terms_.empty() && poly.terms_.back().coefficient == 0) poly.terms_.pop_back();
  if (poly.terms_.size() > kMostTerms) return std::nullopt;
  return poly;
}

std::optional<SizePoly> SizePoly::sum(const SizePoly& a, const SizePoly& b) {
  std::vector<Term> terms = a.terms_;
  terms.insert(terms.end(), b.terms_.begin(), b.terms_.end());
  return normal(std::move(terms));
}

std::optional<SizePoly> SizePoly::product(const SizePoly& a, const SizePoly& b) {
  std::vector<Term> terms;
  for (const Term& x : a.terms_)
    for (const Term& y : b.terms_) {
      Term term = x;
      if (x.factors.size() + y.factors.size() > kMostFactors) return std::nullopt;
      term.factors.insert(term.factors.end(), y.factors.begin(), y.factors.end());
      std::ranges::sort(term.factors);
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &term.coefficient)) return std::nullopt;
      terms.push_back(std::move(term));
    }
  return normal(std::move(terms));
}

std::optional<SymbolId> SizePoly::as_symbol() const {
  if (terms_.size() != 1 || terms_[0].coefficient != 1 || terms_[0].factors.size() != 1) return std::nullopt;
  return terms_[0].factors[0];
}

std::optional<std::int64_t> SizePoly::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.front().factors.empty()) return terms_.front().coefficient;
  return std::nullopt;
}

std::optional<std::uint64_t> SizePoly::evaluate(std::span<const std::uint64_t> values) const {
  // 128 bits hold any term that passes the checks, and the sum of 64 such terms
  __int128 sum = 0;
  for (const Term& term : terms_) {
    __int128 value = term.coefficient;
    for (const SymbolId symbol : term.factors) {
      if (static_cast<std::size_t>(symbol) >= values.size()) return std::nullopt;
      value *= values[static_cast<std::size_t>(symbol)];
      constexpr __int128 kMost = __int128{1} << 63;
      if (value >= kMost || value <= -kMost) return std::nullopt;
    }
    sum += value;
  }
  if (sum < 0 || sum > INT64_MAX) return std::nullopt;
  return static_cast<std::uint64_t>(sum);
}

bool SizePoly::mentions(SymbolId id) const {
  return std::ranges::any_of(terms_, [&](const Term& term) {
    return std::binary_search(term.factors.begin(), term.factors.end(), id);
  });
}

std::string SizePoly::text(std::span<const std::string> symbols) const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term& term : terms_) {
    const bool negative = term.coefficient < 0;
    const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(term.coefficient)
                                        : static_cast<std::uint64_t>(term.coefficient);
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    std::string factors;
    for (const SymbolId symbol : term.factors) {
      const auto at = static_cast<std::size_t>(symbol);
      factors += fmt::format("{}{}", factors.empty() ? "" : "*", at < symbols.size() ? symbols[at] : "?");
    }
    if (factors.empty())
      text += fmt::format("{}", size);
    else
      text += size == 1 ? factors : fmt::format("{}*{}", size, factors);
  }
  return text;
}

// --- Sizes of the values of a forward graph, as formulas and as numbers.

std::string_view lane_name(Lane lane) {
  constexpr std::string_view kNames[] = {"activation", "cache", "temporary"};
  return kNames[static_cast<std::size_t>(lane)];
}

std::vector<std::uint64_t> symbol_values(const ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past) {
  std::vector<std::uint64_t> values(graph.symbols.size(), 1);
  const auto set = [&](SymbolId symbol, std::uint64_t value) {
    const auto at = static_cast<std::size_t>(symbol);
    if (at < values.size()) values[at] = value;
  };
  set(kBatch, batch);
  set(kSequence, sequence);
  set(kPast, past);
  return with_chosen(graph, std::move(values));
}

std::vector<std::uint64_t> with_chosen(const ForwardGraph& graph, std::vector<std::uint64_t> values) {
  for (const ChosenSize& one : graph.chosen) {
    const auto number = [&](const SizePoly& size) { return size.evaluate(values).value_or(0); };
    const auto at = static_cast<std::size_t>(one.symbol);
    if (at < values.size())
      values[at] = number(number(one.size) > number(one.bound) ? one.then : one.otherwise);
  }
  return values;
}

std::optional<SizePoly> value_bytes(const Value& value) {
  if (!value.dtype || !value.shape) return std::nullopt;
  const DTypeInfo& info = dtype_info(*value.dtype);
  if (info.block_elements == 0) return std::nullopt;
  std::optional<SizePoly> elements(1);
  for (const SizePoly& dimension : *value.shape) {
    elements = SizePoly::product(*elements, dimension);
    if (!elements) return std::nullopt;
  }
  if (info.block_elements == 1) return SizePoly::product(*elements, SizePoly(info.block_bytes));
  // packed types have whole bytes only where the count is known
  const auto count = elements->constant();
  if (!count || *count < 0) return std::nullopt;
  const auto bytes = packed_byte_size(*value.dtype, static_cast<std::uint64_t>(*count));
  return bytes && *bytes <= INT64_MAX ? std::optional(SizePoly(static_cast<std::int64_t>(*bytes)))
                                      : std::nullopt;
}

std::vector<bool> bodies_that_run(const ForwardGraph& graph) {
  std::vector<bool> runs(graph.bodies.size(), true);
  // what is inside of a function is reached by its call alone
  const auto note = [&](const std::vector<Op>& ops) {
    for (const Op& op : ops)
      if (setting_for_people(op, kFunction) != nullptr)
        for (const std::uint32_t body : op.bodies) runs[body] = false;
  };
  note(graph.ops);
  for (const Body& body : graph.bodies) note(body.ops);
  // a body stands behind those inside of it
  for (std::size_t i = graph.bodies.size(); i-- > 0;)
    if (!runs[i])
      for (const Op& op : graph.bodies[i].ops)
        for (const std::uint32_t body : op.bodies) runs[body] = false;
  return runs;
}

}  // namespace loadline::graph
