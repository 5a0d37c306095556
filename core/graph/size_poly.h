// Sizes that depend on the batch, the sequence and the past: polynomials with integer coefficients.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// The position of a name in a symbol table (ForwardGraph::symbols).
enum class SymbolId : std::uint16_t {};

// A sum of terms, each a coefficient times a product of symbols: 2*B*S + 64. Kept in normal form (terms
// sorted, none zero), so that equal sizes compare equal. Coefficients may be negative: S - 1.
class SizePoly {
 public:
  SizePoly() = default;  // zero
  explicit SizePoly(std::int64_t constant);
  static SizePoly symbol(SymbolId id);

  // Nothing if a coefficient does not fit in 64 bits or the result has more than kMostTerms terms.
  static std::optional<SizePoly> sum(const SizePoly& a, const SizePoly& b);
  static std::optional<SizePoly> product(const SizePoly& a, const SizePoly& b);

  // The value of a polynomial without symbols, else nothing.
  std::optional<std::int64_t> constant() const;
  // The symbol of a polynomial that is a single symbol, else nothing.
  std::optional<SymbolId> as_symbol() const;
  // The value with values[i] for symbol i. Nothing if it is negative, does not fit in 64 bits, or a symbol
  // has no value.
  std::optional<std::uint64_t> evaluate(std::span<const std::uint64_t> values) const;
  bool mentions(SymbolId id) const;
  // "2*B*S + 64", "S - 1", "0"; a symbol past the end of `symbols` is "?".
  std::string text(std::span<const std::string> symbols) const;

  bool operator==(const SizePoly&) const = default;

  static constexpr std::size_t kMostTerms = 64;
  static constexpr std::size_t kMostFactors = 16;

 private:
  struct Term {
    std::vector<SymbolId> factors;  // sorted, with repetition; empty for the constant
    std::int64_t coefficient = 0;
    bool operator==(const Term&) const = default;
  };
  static std::optional<SizePoly> normal(std::vector<Term> terms);
  std::vector<Term> terms_;
};

}  // namespace loadline
