// How two models differ, as text and as JSON: for `verify` and `diff`.
#pragma once

#include "app/cli/base/command.h"
#include "core/inspect/compare_models.h"

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace loadline::cli {

// Two models and the flags that both commands have.
struct ComparisonFlags {
  std::string a, b;
  std::string tolerance;
  std::size_t limit = 20;
};
// Adds A, B, --tolerance and --limit.
void add_comparison_options(CLI::App& app, ComparisonFlags& flags);
// "ABS" or "ABS,REL", both finite and not negative; nothing for an empty text. Throws Error{usage}.
std::optional<inspect::Tolerance> parse_tolerance(const std::string& text);
// "within 0.001, or within 1e-05 of the larger number"; "as numbers" if nothing is tolerated
std::string tolerance_text(const inspect::Tolerance& tolerance);

struct ComparedModels {
  graph::MetaGraphPtr a, b;
  inspect::Comparison comparison;
  double seconds = 0;
  bool mapped = false;  // a Hugging Face model beside its GGUF file, under llama.cpp's names

  bool same() const;
};
// Opens and compares with a progress line.
ComparedModels compare_for(const Context& context, const graph::MetaGraphPtr& a, const graph::MetaGraphPtr& b,
                           const inspect::CompareOptions& options, std::string label);

// `diff` shows types in a table of its own.
enum class DifferenceKinds { all, without_types };
// The tensors that differ, by kind, at most `limit` of each kind; nothing if none do.
void print_differences(const ComparedModels& models, std::size_t limit, DifferenceKinds kinds);
// A line of counts: "75 tensors in A, 74 in B: 71 equal, 3 with other values, 1 only in A."
std::string counts_text(const ComparedModels& models);
// A warning where names share nothing, or where only types differ; else empty.
std::string advice_text(const ComparedModels& models, bool has_tolerance);

// The counts, and the differing tensors as rows of `differences`.
Json counts_json(const ComparedModels& models);
JsonRows differences_json(const ComparedModels& models);

}  // namespace loadline::cli
