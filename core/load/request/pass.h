// The forward pass that follows a load, and what it reads of each weight.
#pragma once

#include "core/forward/model/assets_loader.h"
#include "core/forward/model/forward_model.h"
#include "core/load/request/request.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::load {

// --- The forward pass that a request asks for, bound to the model's operators if they are known.

// Whether a requested pass is an Error if neither operators nor a configuration describe it.
enum class UnknownPass : std::uint8_t { refuse, leave_out };

class RequestPass {
 public:
  // `assets` null: the built-in ones. Throws Error{usage} for an unknown profile or for options without
  // meaning for these operators; Error{unsupported} if a sequence is requested but neither operators nor a
  // configuration describe the pass.
  RequestPass(const graph::MetaGraph& graph, const LoadRequest& request,
              std::shared_ptr<const forward::ForwardAssets> assets,
              UnknownPass unknown = UnknownPass::refuse);

  RequestPass(const RequestPass&) = delete;  // pass() points into it
  RequestPass& operator=(const RequestPass&) = delete;

  // The pass to append to a load; null if none was requested or the operators are unknown.
  const plan::ForwardPass* pass() const { return pass_ ? &*pass_ : nullptr; }
  const forward::ForwardModel& model() const { return model_; }
  // Batch, new tokens and cached tokens, after the ONNX file's named sizes are taken into account.
  std::uint64_t batch() const { return batch_; }
  std::uint64_t sequence() const { return sequence_; }
  std::uint64_t past() const { return past_; }
  // Values of the graph's symbols, if a pass was requested.
  const std::vector<std::uint64_t>& symbols() const { return symbols_; }
  // Absent if the operators are unknown or no pass was requested.
  const std::optional<forward::ForwardFigures>& figures() const { return figures_; }
  // Upper bound for the activations, if there are no figures.
  const std::optional<std::uint64_t>& activation_bound() const { return bound_; }
  // Remarks on the pass for the user.
  const std::vector<std::string>& notes() const { return notes_; }
  // guessed_sizes(): named sizes of the file that were taken for the batch or the sequence. unset_sizes():
  // named sizes that the request did not set; they are 1.
  const std::vector<std::string>& guessed_sizes() const { return guessed_; }
  const std::vector<std::string>& unset_sizes() const { return unset_; }
  // The open sides of pictures, each with the pixels that it was taken as: "height as 224".
  const std::vector<std::string>& picture_sides() const { return picture_sides_; }
  // Number of values that pass() leaves out because their size is unknown.
  std::size_t unknown_values() const { return figures_ ? figures_->peak.unknown : 0; }
  // The size of the cache after the pass, from the settings, if the operators are unknown: at most and at
  // least. Throws Error{limit}.
  std::uint64_t estimated_cache() const;
  std::uint64_t least_cache() const;

 private:
  void choose_sizes(const LoadRequest& request);
  std::uint64_t cache_of(const forward::CacheGrowth& growth) const;

  std::shared_ptr<const forward::ForwardAssets> assets_;  // model_ refers to it
  forward::ForwardModel model_;
  std::uint64_t batch_ = 1, sequence_ = 0, past_ = 0;
  std::vector<std::uint64_t> symbols_;
  std::optional<forward::ForwardFigures> figures_;
  std::vector<std::string> notes_, guessed_, picture_sides_, unset_;
  std::optional<std::uint64_t> bound_;
  std::optional<plan::ForwardPass> pass_;
};

// --- What a forward pass reads of each weight, and what of that is not in memory of its own.

struct BoundRequest;  // bind_request.h

// Of the experts of a layer, how many one token uses. 0: not known, or there are none.
struct Experts {
  std::uint64_t all = 0, used = 0;
};

// A pass reads all of a weight, but of an embedding that is not also the head only the rows of its tokens,
// with the pages that the kernel maps around them; and of experts at most as many as its tokens can use.
// `whole`: the pass brings weights to the device, whole ones.
class WeightReads {
 public:
  WeightReads(const graph::MetaGraph& graph, const BoundRequest& bound, bool whole);
  std::uint64_t of(graph::StorageId id) const;

 private:
  const graph::MetaGraph& graph_;
  const Placement& placement_;
  const std::uint64_t tokens_;  // 0: unknown, or all rows
  const std::vector<std::optional<graph::TensorId>> owners_;
  const std::optional<graph::StorageId> shared_;
  const Experts experts_;
};

// Weights that every token reads from files: those that the plan leaves mapped, and those on disk. Bytes.
struct PassReads {
  std::uint64_t mapped = 0;
  std::uint64_t disk = 0;
  std::uint64_t all() const { return mapped + disk; }
};
// Zero if nothing follows the load. `timeline` is the plan's.
PassReads pass_reads(const graph::MetaGraph& graph, const BoundRequest& bound, bool whole,
                     const plan::Plan& plan, const plan::Timeline& timeline);

}  // namespace loadline::load
