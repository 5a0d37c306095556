// Parses sums of products, left to right, without parentheses: exporters write no other expressions.
#include "core/base/text.h"
#include "importers/onnx/forward.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

namespace loadline::importers {
namespace {

struct Aliases {
  graph::SymbolId symbol;
  std::string_view names;
};
constexpr Aliases kAliases[] = {
    {graph::kBatch, "B b bs bsz N batch batch_size"},
    {graph::kSequence,
     "S s seq seq_len seq_length sequence sequence_len sequence_length seqlen max_seq_len "
     "max_sequence_length input_length encoder_sequence_length decoder_sequence_length"},
    {graph::kPast,
     "P past past_len past_length past_seq_len past_sequence_length "
     "past_decoder_sequence_length"},
};
// The new tokens and those before them.
constexpr std::string_view kTotals = "total_sequence_length total_seq_len kv_len kv_seq_len kv_length";
// Names of an input that mean the sequence only if no name above does, because they may have other meanings.
constexpr std::string_view kMaybeSequence = "T L len length time tokens num_tokens n_tokens";

bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}
bool is_space(char c) { return c == ' ' || c == '\t'; }

// Splits the text into names, numbers and the signs + - *. Nothing if it contains anything else.
std::optional<std::vector<std::string_view>> tokens(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    if (is_space(text.front())) {
      text.remove_prefix(1);
      continue;
    }
    const auto end = std::ranges::find_if_not(text, is_name);
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

// The longest text that is parsed as an expression; a longer text is a name.
constexpr std::size_t kMostText = 1000;

std::optional<graph::SymbolId> alias(std::string_view name) {
  for (const Aliases& row : kAliases)
    if (has_word(row.names, name)) return row.symbol;
  return std::nullopt;
}

// A dimension with a single name of unknown meaning.
bool says_nothing(const OnnxDim& dim) {
  const std::string& name = dim.name;
  return dim.open || (!dim.value && !name.empty() && !is_digit(name.front()) && !name.starts_with("unk__") &&
                      std::ranges::all_of(name, is_name) && !alias(name) && !has_word(kTotals, name));
}

// The likely kind of an input.
enum class InputKind { tokens, mask, numbers, other };

InputKind kind_of(const OnnxValue& input, bool alone) {
  const std::optional<graph::DType> dtype = graph::dtype_from(&graph::DTypeInfo::onnx, input.type.elem_type);
  const std::size_t rank = input.type.dims.size();
  if (!dtype || !input.type.has_shape) return InputKind::other;
  constexpr std::size_t kMostRank = 4;
  const graph::DTypeKind kind = graph::dtype_info(*dtype).kind;
  if (kind == graph::DTypeKind::floating)
    return rank >= 1 && rank <= kMostRank ? InputKind::numbers : InputKind::other;
  if ((kind != graph::DTypeKind::integer && kind != graph::DTypeKind::boolean) || rank != 2)
    return InputKind::other;
  const std::string name = lower_case(std::string_view(input.name).substr(0, 200));
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  const bool could_be = alone && (*dtype == graph::DType::i32 || *dtype == graph::DType::i64);
  if (could_be || has("ids") || has("token")) return InputKind::tokens;
  return has("mask") ? InputKind::mask : InputKind::other;
}

}  // namespace

std::string open_size_name(std::string_view input, std::size_t position) {
  return fmt::format("{}[{}]", input, position);
}

void name_open_sizes(OnnxModel& model) {
  if (!model.graph) return;
  for (OnnxValue& input : model.graphs[static_cast<std::size_t>(*model.graph)].inputs)
    for (std::size_t i = 0; i < input.type.dims.size(); ++i)
      if (OnnxDim& dim = input.type.dims[i]; dim.value ? *dim.value < 0 : dim.name.empty())
        dim = {{}, open_size_name(input.name, i), true};
}

bool mentions(std::string_view dimension, std::string_view name) {
  for (std::size_t at = dimension.find(name); at != std::string_view::npos && !name.empty();
       at = dimension.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_name(dimension[at - 1])) && (end == dimension.size() || !is_name(dimension[end])))
      return true;
  }
  return false;
}

void OnnxSymbols::take(std::span<const PictureSide> sides) {
  for (const PictureSide& side : sides)
    take(side.name.empty() ? open_size_name(side.input, side.position) : side.name,
         graph::SizePoly(side.pixels), true, side.name.empty());
}

void OnnxSymbols::take(std::string_view name, const graph::SizePoly& as, bool guessed, bool open) {
  if (known_.try_emplace(std::string(name), as).second)
    graph_.sizes.push_back({.name = std::string(name), .taken_as = as, .guessed = guessed, .open = open});
}

void OnnxSymbols::guess(std::span<const OnnxValue* const> inputs) {
  std::array<bool, 3> is_told = {};  // by symbol
  const auto tell = [&](graph::SymbolId symbol) { is_told[static_cast<std::size_t>(symbol)] = true; };
  const auto told = [&](graph::SymbolId symbol) { return is_told[static_cast<std::size_t>(symbol)]; };
  for (const OnnxValue* input : inputs)
    for (const OnnxDim& dim : input->type.dims)
      if (const auto symbol = alias(dim.name)) tell(*symbol);
  for (const OnnxValue* input : inputs)
    for (const OnnxDim& dim : input->type.dims)
      if (!told(graph::kSequence) && has_word(kMaybeSequence, dim.name))
        take(dim.name, graph::SizePoly::symbol(graph::kSequence), true);
  const auto is_known = [&](const graph::SizePoly& size) {
    return std::ranges::any_of(known_, [&](const auto& row) { return row.second == size; });
  };
  if (is_known(graph::SizePoly::symbol(graph::kSequence))) tell(graph::kSequence);
  // open sizes of several inputs can be the same one, names cannot
  std::array<bool, 3> by_place = {};
  const auto try_name = [&](const OnnxDim& dim, graph::SymbolId symbol) {
    bool& placed = by_place[static_cast<std::size_t>(symbol)];
    if ((told(symbol) && !(dim.open && placed)) || !says_nothing(dim) || known_.contains(dim.name)) return;
    take(dim.name, graph::SizePoly::symbol(symbol), true, dim.open);
    tell(symbol);
    placed = placed || dim.open;
  };
  for (const InputKind kind : {InputKind::tokens, InputKind::mask, InputKind::numbers})
    for (const OnnxValue* input : inputs) {
      if (kind_of(*input, inputs.size() == 1) != kind) continue;
      const std::vector<OnnxDim>& dims = input->type.dims;
      const auto same = [&](const OnnxDim& dim) { return !dim.value && dim.name == dims[0].name; };
      if (std::none_of(dims.begin() + 1, dims.end(), same)) try_name(dims[0], graph::kBatch);
      if (kind != InputKind::numbers) try_name(dims[1], graph::kSequence);
    }
}

std::optional<graph::SizePoly> OnnxSymbols::symbol(std::string_view name) {
  if (const auto found = known_.find(name); found != known_.end()) return found->second;
  std::optional<graph::SizePoly> size;
  if (has_word(kTotals, name)) {
    size = graph::SizePoly::sum(graph::SizePoly::symbol(graph::kSequence),
                                graph::SizePoly::symbol(graph::kPast));
  } else if (const auto known = alias(name)) {
    size = graph::SizePoly::symbol(*known);
  } else if (graph_.symbols.size() < kMostSymbols) {
    size = graph::SizePoly::symbol(graph::SymbolId{static_cast<std::uint16_t>(graph_.symbols.size())});
    graph_.symbols.emplace_back(name);
  }
  if (size) take(name, *size, false);
  return size;
}

std::optional<graph::SizePoly> OnnxSymbols::parse(std::string_view text) {
  if (text.find_first_not_of(" \t") == std::string_view::npos) return std::nullopt;
  const auto parts = text.size() <= kMostText ? tokens(text) : std::nullopt;
  // operands and signs must alternate, after one sign at most
  const bool signed_first = parts && (parts->front() == "-" || parts->front() == "+");
  const std::size_t first = signed_first ? 1 : 0;
  bool well_formed = parts && (parts->size() - first) % 2 == 1;
  for (std::size_t i = first; well_formed && i < parts->size(); ++i)
    well_formed = is_name(parts->at(i).front()) == ((i - first) % 2 == 0);
  if (!well_formed) return symbol(text);

  graph::SizePoly sum;
  graph::SizePoly product(signed_first && parts->front() == "-" ? -1 : 1);
  for (std::size_t i = first; i < parts->size(); ++i) {
    const std::string_view part = (*parts)[i];
    if ((i - first) % 2 == 1) {
      if (part == "*") continue;
      const auto total = graph::SizePoly::sum(sum, product);
      if (!total) return std::nullopt;
      sum = *total;
      product = graph::SizePoly(part == "-" ? -1 : 1);
      continue;
    }
    std::optional<graph::SizePoly> factor;
    if (is_digit(part.front())) {
      const auto number = text_as<std::int64_t>(part);
      if (!number) return symbol(text);
      factor = graph::SizePoly(*number);
    } else {
      factor = symbol(part);
    }
    const auto next = factor ? graph::SizePoly::product(product, *factor) : std::nullopt;
    if (!next) return std::nullopt;
    product = *next;
  }
  return graph::SizePoly::sum(sum, product);
}

std::optional<graph::SizePoly> OnnxSymbols::size(const OnnxDim& dim) {
  // names that the onnx library invents for dimensions that it could not infer
  if (!dim.value && dim.open && !known_.contains(dim.name) && graph_.symbols.size() < kMostSymbols) {
    const graph::SymbolId fresh{static_cast<std::uint16_t>(graph_.symbols.size())};
    graph_.symbols.push_back(dim.name);
    take(dim.name, graph::SizePoly::symbol(fresh), false, true);
  }
  if (!dim.value) return dim.name.starts_with("unk__") ? std::nullopt : parse(dim.name);
  return *dim.value >= 0 ? std::optional(graph::SizePoly(*dim.value)) : std::nullopt;
}

std::optional<std::vector<graph::SizePoly>> OnnxSymbols::shape(const OnnxType& type) {
  if (!type.has_shape) return std::nullopt;
  std::vector<graph::SizePoly> sizes;
  for (const OnnxDim& dim : type.dims) {
    auto one = size(dim);
    if (!one) return std::nullopt;
    sizes.push_back(std::move(*one));
  }
  return sizes;
}

}  // namespace loadline::importers
