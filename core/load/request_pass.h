// The forward pass that a request asks for, as far as the model's operators are known.
#pragma once

#include "core/forward/assets.h"
#include "core/forward/forward_model.h"
#include "core/load/request.h"
#include "core/plan/forward_pass.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// Whether a pass of which nothing is known is an Error.
enum class UnknownPass : std::uint8_t { refuse, leave_out };

class RequestPass {
 public:
  // `assets` null: those built in. Throws Error{usage} for a profile that there is not, and for options that
  // mean nothing for these operators; Error{unsupported} where a sequence is asked for and neither operators
  // nor a configuration say anything about it.
  RequestPass(const MetaGraph& graph, const LoadRequest& request, std::shared_ptr<const ForwardAssets> assets,
              UnknownPass unknown = UnknownPass::refuse);

  RequestPass(const RequestPass&) = delete;  // pass() points into it
  RequestPass& operator=(const RequestPass&) = delete;

  // The pass to put behind a load: none unless one was asked for, nor where the operators are not known.
  const ForwardPass* pass() const { return pass_ ? &*pass_ : nullptr; }
  const ForwardModel& model() const { return model_; }
  // Batch, new tokens and tokens before, with what an ONNX file's own names settle.
  std::uint64_t batch() const { return batch_; }
  std::uint64_t sequence() const { return sequence_; }
  std::uint64_t past() const { return past_; }
  // Of the graph, where a pass was asked for.
  const std::vector<std::uint64_t>& symbols() const { return symbols_; }
  // Nothing where no operators are known or no pass was asked for.
  const std::optional<ForwardFigures>& figures() const { return figures_; }
  // Of the activations, where there are no figures.
  const std::optional<std::uint64_t>& activation_bound() const { return bound_; }
  // What a reader should know beside the pass.
  const std::vector<std::string>& notes() const { return notes_; }
  // Sizes with names of the file's own that were guessed to be the batch or the sequence, and those that
  // nobody chose, which are 1.
  const std::vector<std::string>& guessed_sizes() const { return guessed_; }
  const std::vector<std::string>& unset_sizes() const { return unset_; }
  // Values that pass() leaves out because nobody knows their size.
  std::size_t unknown_values() const { return figures_ ? figures_->peak.unknown : 0; }
  // The cache after the pass as the configuration tells it, where the operators are not known. Throws
  // Error{limit}.
  std::uint64_t estimated_cache() const;

 private:
  void choose_sizes(const LoadRequest& request);

  std::shared_ptr<const ForwardAssets> assets_;  // what model_ is bound to
  ForwardModel model_;
  std::uint64_t batch_ = 1, sequence_ = 0, past_ = 0;
  std::vector<std::uint64_t> symbols_;
  std::optional<ForwardFigures> figures_;
  std::vector<std::string> notes_, guessed_, unset_;
  std::optional<std::uint64_t> bound_;
  std::optional<ForwardPass> pass_;
};

}  // namespace loadline
