// Selects tensors by a typed text: "dtype:bf16 shape:*x4096 size:>100MiB layer:0-7".
#pragma once

#include "core/graph/meta_graph.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// The text consists of terms separated by spaces; a tensor must satisfy all of them. A term is KEY:VALUE, or
// a word alone, which must occur in the name. "-" before a term negates it. VALUE may be in quotes.
//
//   name:GLOB    file:GLOB     * any run, ? one character; matches the whole name, case-sensitive
//   dtype:GLOB                 case-insensitive; several with commas: dtype:f32,bf16
//   shape:GLOB                 sizes with x between: *x4096, 32000x*
//   size:RANGE                 bytes: >100MiB, <=4KiB, 1MiB-2MiB, 4096
//   rank:  layer:  shard:RANGE numbers: 3, 0-7, >=2, 1,4,7; shard numbers the files with weights from 1
class TensorFilter {
 public:
  // Every tensor passes an empty text. Throws Error{usage} that quotes the faulty term.
  explicit TensorFilter(std::string_view text);

  bool empty() const { return terms_.empty(); }
  // The tensors that pass, in graph order.
  std::vector<TensorId> select(const MetaGraph& graph) const;

 private:
  struct Context;
  using Test = std::function<bool(const Context&, const Tensor&)>;
  static Test make_test(std::string_view key, const std::string& value, const std::string& term);
  void add_term(bool turned, std::string_view key, const std::string& value, const std::string& term);

  struct Term {
    bool turned = false;
    Test test;
  };
  std::vector<Term> terms_;
};

// Whether `pattern`, in which * stands for any run and ? for one character, matches all of `text`.
bool glob_matches(std::string_view pattern, std::string_view text);

// The grammar in one line, for --help and the window.
std::string_view filter_help();

}  // namespace loadline
