// --batch, --seq, --past, --dim, --profile and what is chosen beside it, and what is said of a forward pass.
#pragma once

#include "app/cli/command.h"
#include "core/forward/forward_model.h"
#include "core/forward/pass_sizes.h"
#include "core/load/methods.h"
#include "core/plan/forward_pass.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline::cli {

struct ForwardArguments {
  std::uint64_t batch = 1;
  std::uint64_t sequence = 0;  // 0: not asked for
  std::uint64_t past = 0;
  ForwardOptions options = {};
  std::vector<SizeChoice> sizes = {};  // by the file's own names
  bool needs_estimate = true;          // a pass of which nothing is known is an Error
};

// `arguments` must outlive parsing.
void add_forward_options(CLI::App& app, ForwardArguments& arguments);

// Throws Error{usage} for activations that are asked for beside a pass, which has its own.
void require_one_pass(const MethodOptions& options, const ForwardPass* pass);

// The forward pass of a model, as asked for.
class ForwardAnswer {
 public:
  // Throws Error{usage} for a profile that there is not, and Error{unsupported} where a sequence is asked for
  // and neither operators nor a configuration say anything about it.
  ForwardAnswer(const Context& context, const MetaGraph& graph, const ForwardArguments& arguments);

  ForwardAnswer(const ForwardAnswer&) = delete;  // pass() points into it
  ForwardAnswer& operator=(const ForwardAnswer&) = delete;

  // The pass to put behind a load: none unless a sequence was asked for, nor where the operators are not
  // known.
  const ForwardPass* pass() const { return pass_ ? &*pass_ : nullptr; }
  // As asked for, with what the file's own names settle.
  const ForwardArguments& arguments() const { return arguments_; }
  // Why there is no more than there is; may be empty.
  const std::string& remark() const { return model_.remark; }
  // What a reader should know beside the pass.
  const std::vector<std::string>& notes() const { return notes_; }
  // What a file's own names for sizes were taken as, where that may be wrong.
  std::vector<std::string> size_notes() const;
  // Values that pass() leaves out because nobody knows their size.
  std::size_t unknown_values() const { return figures_ ? figures_->peak.unknown : 0; }
  // Whose use of memory was taken; empty where nothing is known.
  const std::string& profile() const { return model_.profile; }
  // The contract's "forward"; null where nothing is known.
  Json json() const;
  // Lines for a person; empty where nothing is known and nothing was asked.
  std::string text() const;

 private:
  void choose_sizes();
  Json sizes_json() const;
  std::string figures_text() const;
  std::string estimates_text() const;
  std::uint64_t estimated_cache() const;

  ForwardArguments arguments_;
  std::shared_ptr<const ForwardAssets> assets_;  // what model_ is bound to
  ForwardModel model_;
  std::vector<std::uint64_t> symbols_;  // of the graph, where a pass is asked for
  std::optional<ForwardFigures> figures_;
  std::vector<std::string> notes_;      // pass_notes()
  std::optional<std::uint64_t> bound_;  // of the activations, where there are no figures
  std::optional<ForwardPass> pass_;
};

}  // namespace loadline::cli
