// Turns the terms of a filter into tests on tensors.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace loadline::graph {

// The facts that a test needs besides the tensor itself.
struct TensorFilter::Context {
  const MetaGraph& graph;
  std::vector<std::uint64_t> shard_of_file;  // from 1; 0 for a file without weights
};

namespace {

// A set of numbers: pieces separated by commas, each a number, a span or a bound.
class NumberSet {
 public:
  using Parse = std::uint64_t (*)(std::string_view text, const std::string& term);

  NumberSet(std::string_view text, Parse parse, const std::string& term) {
    for (const std::string_view piece : split(text, ',')) add(piece, parse, term);
  }
  bool contains(std::uint64_t number) const {
    return std::ranges::any_of(spans_,
                               [&](const Span& span) { return span.least <= number && number <= span.most; });
  }

 private:
  struct Span {
    std::uint64_t least = 0;
    std::uint64_t most = UINT64_MAX;
  };

  void add(std::string_view piece, Parse parse, const std::string& term) {
    const auto bound = [&](std::string_view sign) { return parse(piece.substr(sign.size()), term); };
    if (piece.starts_with(">=")) return spans_.push_back({bound(">="), UINT64_MAX});
    if (piece.starts_with("<=")) return spans_.push_back({0, bound("<=")});
    if (piece.starts_with(">")) {
      const std::uint64_t number = bound(">");
      if (number < UINT64_MAX) spans_.push_back({number + 1, UINT64_MAX});
      return;
    }
    if (piece.starts_with("<")) {
      const std::uint64_t number = bound("<");
      if (number > 0) spans_.push_back({0, number - 1});
      return;
    }
    if (piece.starts_with("=")) piece.remove_prefix(1);
    const std::size_t dash = piece.find('-');
    const std::uint64_t least = parse(piece.substr(0, dash), term);
    const std::uint64_t most = dash == std::string_view::npos ? least : parse(piece.substr(dash + 1), term);
    if (most < least)
      throw Error(ErrorCode::usage, "filter term '{}': {} is more than {}", safe_display(term, 60), least,
                  most);
    spans_.push_back({least, most});
  }

  std::vector<Span> spans_;
};

std::uint64_t parse_number(std::string_view text, const std::string& term) {
  if (const auto number = text_as<std::uint64_t>(text)) return *number;
  throw Error(ErrorCode::usage, "filter term '{}': '{}' is not a number", safe_display(term, 60),
              safe_display(text, 40));
}

std::uint64_t parse_bytes(std::string_view text, const std::string& term) {
  return parse_size(text, fmt::format("filter term '{}'", safe_display(term, 60)));
}

std::vector<std::string> patterns_in(std::string_view value) {
  const std::string low = lower_case(value);
  const std::vector<std::string_view> parts = split(low, ',');
  return {parts.begin(), parts.end()};
}

bool any_glob(const std::vector<std::string>& patterns, std::string_view text) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return glob_matches(pattern, text); });
}

std::string shape_text(const Tensor& tensor) { return fmt::format("{}", fmt::join(tensor.shape, "x")); }

}  // namespace

// Goes back to the last star only: linear in practice, never worse than the product of the lengths.
bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string_view filter_help() {
  return "name:*q_proj* dtype:bf16 shape:*x4096 size:>100MiB rank:2 layer:0-7 shard:3 file:*.gguf, a word of "
         "the name, -TERM for its opposite";
}

TensorFilter::Test TensorFilter::make_test(std::string_view key, const std::string& value,
                                           const std::string& term) {
  if (key == "name")
    return [value](const Context&, const Tensor& tensor) { return glob_matches(value, tensor.name); };
  if (key == "dtype")
    return [patterns = patterns_in(value)](const Context&, const Tensor& tensor) {
      return any_glob(patterns, lower_case(dtype_info(tensor.dtype).name));
    };
  if (key == "shape")
    return [patterns = patterns_in(value)](const Context&, const Tensor& tensor) {
      return any_glob(patterns, shape_text(tensor));
    };
  if (key == "size")
    return [set = NumberSet(value, parse_bytes, term)](const Context& context, const Tensor& tensor) {
      return set.contains(tensor_bytes(context.graph, tensor));
    };
  if (key == "rank")
    return [set = NumberSet(value, parse_number, term)](const Context&, const Tensor& tensor) {
      return set.contains(tensor.shape.size());
    };
  if (key == "layer")
    return [set = NumberSet(value, parse_number, term)](const Context&, const Tensor& tensor) {
      const auto layer = layer_number(tensor.name);
      return layer && set.contains(*layer);
    };
  if (key == "shard")
    return [set = NumberSet(value, parse_number, term)](const Context& context, const Tensor& tensor) {
      const FileId file = context.graph.storage(tensor.storage).file;
      return file != kNoFile && set.contains(context.shard_of_file[index(file)]);
    };
  if (key == "file")
    return [value](const Context& context, const Tensor& tensor) {
      const FileId file = context.graph.storage(tensor.storage).file;
      return file != kNoFile &&
             glob_matches(value, std::filesystem::path(context.graph.file(file).path).filename().string());
    };
  throw Error(ErrorCode::usage,
              "filter term '{}': there is no '{}'; known are name, dtype, shape, size, rank, layer, "
              "shard and file",
              safe_display(term, 60), safe_display(key, 40));
}

TensorFilter::TensorFilter(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    std::string term;
    bool quoted = false;
    for (; at < text.size() && (quoted || !is_space(text[at])); ++at)
      if (text[at] == '"')
        quoted = !quoted;
      else
        term += text[at];
    if (quoted)
      throw Error(ErrorCode::usage, "filter term '{}': the quote is not closed", safe_display(term, 60));
    const bool turned = term.size() > 1 && term.front() == '-';
    const std::string_view body = std::string_view(term).substr(turned ? 1 : 0);
    const std::size_t colon = body.find(':');
    if (colon == std::string_view::npos)
      add_term(turned, "name", fmt::format("*{}*", body), term);
    else
      add_term(turned, body.substr(0, colon), std::string(body.substr(colon + 1)), term);
  }
}

void TensorFilter::add_term(bool turned, std::string_view key, const std::string& value,
                            const std::string& term) {
  if (value.empty()) throw Error(ErrorCode::usage, "filter term '{}' has no value", safe_display(term, 60));
  terms_.push_back({turned, make_test(key, value, term)});
}

std::vector<TensorId> TensorFilter::select(const MetaGraph& graph) const {
  Context context = {graph, std::vector<std::uint64_t>(graph.files.size(), 0)};
  for (const Storage& storage : graph.storages)
    if (storage.file != kNoFile) context.shard_of_file[index(storage.file)] = 1;
  std::uint64_t shard = 0;
  for (std::uint64_t& number : context.shard_of_file)
    if (number != 0) number = ++shard;
  std::vector<TensorId> selected;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i)
    if (std::ranges::all_of(
            terms_, [&](const Term& term) { return term.test(context, graph.tensors[i]) != term.turned; }))
      selected.push_back(TensorId{i});
  return selected;
}

}  // namespace loadline::graph
