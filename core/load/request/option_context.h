// What a load option means for the model that is open: whether it has an effect, its words, the value in
// force.
#pragma once

#include "core/forward/model/forward_model.h"
#include "core/load/request/bind_request.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::load {

// The operators of the model, if they are known.
struct PassContext {
  const graph::MetaGraph& graph;
  const forward::ForwardModel& model;  // with a forward graph
  const forward::ForwardAssets& assets;
  const std::vector<bool>& symbols_matter;  // per symbol: whether some size depends on it
  bool has_cache = false;
  bool has_logits = false;  // a head, whose rows can be chosen
};

struct LoadContext {
  LoadMemory memory = {};
  std::span<const Target> targets = {};
  std::optional<std::uint64_t> layers = {};  // absent: no model is open
  std::uint64_t weight_bytes = 0;
  std::optional<PassContext> pass = {};
  bool pass_follows = false;  // its sizes are known
};

struct OptionWord {
  std::string word;
  std::string shown;
  std::string heading = {};  // of a group of words that follow each other: "Desktop"
  std::string beside = {};   // "24.00 GiB"
};

// Each may be null: then the option's row says it all.
struct OptionInContext {
  bool (*applies)(const LoadContext&) = nullptr;  // false: the option has no effect
  std::vector<OptionWord> (*words)(const LoadContext&) = nullptr;
  std::string (*shown)(std::string_view word) = nullptr;  // a word of the row's choices, for people
  // The names of the sizes that a row of NAME=N can set.
  std::vector<std::string> (*names)(const LoadContext&) = nullptr;
  std::string (*in_force)(const LoadContext&) = nullptr;     // if no value is set
  std::uint64_t (*most)(const LoadContext&) = nullptr;       // that is worth a slider
  std::string (*first_value)(const LoadContext&) = nullptr;  // to begin with; empty: nothing is likely
  std::string (*why_in_force)(const LoadContext&) =
      nullptr;  // a sentence; empty: there is nothing to explain
};

// "6.00 GiB of 8.00 GiB: 2.00 GiB are kept free for the system and other programs"; empty if nothing is
// reserved.
std::string reserve_words(const LoadMemory& memory);

// Of the rows of load_options().
namespace in_context {
extern const OptionInContext activation_type, activations, automatic_map, batch, cache_type, device_budget,
    host_budget, layers, logits, memory, named_sizes, past, profile, sequence, target;
}  // namespace in_context

}  // namespace loadline::load
