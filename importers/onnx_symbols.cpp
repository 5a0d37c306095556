// A scanner of sums of products, left to right, without parentheses: exporters write no others.
#include "importers/onnx_symbols.h"

#include <algorithm>
#include <charconv>

namespace loadline {
namespace {

struct Alias {
  std::string_view name;
  SymbolId symbol;
};

constexpr Alias kAliases[] = {
    {"B", kBatch},
    {"b", kBatch},
    {"N", kBatch},
    {"batch", kBatch},
    {"batch_size", kBatch},
    {"S", kSequence},
    {"s", kSequence},
    {"seq", kSequence},
    {"seq_len", kSequence},
    {"seq_length", kSequence},
    {"sequence", kSequence},
    {"sequence_len", kSequence},
    {"sequence_length", kSequence},
    {"P", kPast},
    {"past", kPast},
    {"past_len", kPast},
    {"past_length", kPast},
    {"past_seq_len", kPast},
    {"past_sequence_length", kPast},
};
// The new tokens and those before them.
constexpr std::string_view kTotals[] = {"total_sequence_length", "total_seq_len"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}
bool is_space(char c) { return c == ' ' || c == '\t'; }

// What the text is made of: names, numbers, and the signs + - *. Nothing if anything else is in it.
std::optional<std::vector<std::string_view>> tokens(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    if (is_space(text.front())) {
      text.remove_prefix(1);
      continue;
    }
    const auto end = std::find_if_not(text.begin(), text.end(), is_name);
    std::size_t length = static_cast<std::size_t>(end - text.begin());
    if (length == 0) {
      if (std::string_view("+-*").find(text.front()) == std::string_view::npos) return std::nullopt;
      length = 1;
    }
    found.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return found;
}

// The longest expression that is taken apart; a longer text is a name.
constexpr std::size_t kMostText = 1000;

}  // namespace

std::optional<SizePoly> OnnxSymbols::symbol(std::string_view name) {
  if (std::find(std::begin(kTotals), std::end(kTotals), name) != std::end(kTotals))
    return SizePoly::sum(SizePoly::symbol(kSequence), SizePoly::symbol(kPast));
  const auto alias = std::find_if(std::begin(kAliases), std::end(kAliases),
                                  [&](const Alias& row) { return row.name == name; });
  if (alias != std::end(kAliases)) return SizePoly::symbol(alias->symbol);
  const auto [found, fresh] =
      own_.try_emplace(std::string(name), SymbolId{static_cast<std::uint16_t>(symbols_.size())});
  if (fresh) {
    if (symbols_.size() >= kMostSymbols) {
      own_.erase(found);
      return std::nullopt;
    }
    symbols_.emplace_back(name);
  }
  return SizePoly::symbol(found->second);
}

std::optional<SizePoly> OnnxSymbols::parse(std::string_view text) {
  if (text.find_first_not_of(" \t") == std::string_view::npos) return std::nullopt;
  const auto parts = text.size() <= kMostText ? tokens(text) : std::nullopt;
  // operands and signs must alternate, after one sign at most
  const bool signed_first = parts && (parts->front() == "-" || parts->front() == "+");
  const std::size_t first = signed_first ? 1 : 0;
  bool well_formed = parts && (parts->size() - first) % 2 == 1;
  for (std::size_t i = first; well_formed && i < parts->size(); ++i)
    well_formed = is_name(parts->at(i).front()) == ((i - first) % 2 == 0);
  if (!well_formed) return symbol(text);

  SizePoly sum;
  SizePoly product(signed_first && parts->front() == "-" ? -1 : 1);
  for (std::size_t i = first; i < parts->size(); ++i) {
    const std::string_view part = (*parts)[i];
    if ((i - first) % 2 == 1) {
      if (part == "*") continue;
      const auto total = SizePoly::sum(sum, product);
      if (!total) return std::nullopt;
      sum = *total;
      product = SizePoly(part == "-" ? -1 : 1);
      continue;
    }
    std::optional<SizePoly> factor;
    if (is_digit(part.front())) {
      std::int64_t number = 0;
      const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), number);
      if (failure != std::errc() || end != part.data() + part.size()) return symbol(text);
      factor = SizePoly(number);
    } else {
      factor = symbol(part);
    }
    const auto next = factor ? SizePoly::product(product, *factor) : std::nullopt;
    if (!next) return std::nullopt;
    product = *next;
  }
  return SizePoly::sum(sum, product);
}

std::optional<SizePoly> OnnxSymbols::size(const OnnxDim& dim) {
  // names that the onnx library makes up for what it could not infer
  if (!dim.value) return dim.name.starts_with("unk__") ? std::nullopt : parse(dim.name);
  return *dim.value >= 0 ? std::optional(SizePoly(*dim.value)) : std::nullopt;
}

std::optional<std::vector<SizePoly>> OnnxSymbols::shape(const OnnxType& type) {
  if (!type.has_shape) return std::nullopt;
  std::vector<SizePoly> sizes;
  for (const OnnxDim& dim : type.dims) {
    auto one = size(dim);
    if (!one) return std::nullopt;
    sizes.push_back(std::move(*one));
  }
  return sizes;
}

}  // namespace loadline
