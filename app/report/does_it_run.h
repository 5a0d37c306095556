// Whether a model runs where it is asked to: its weights, a prompt, the largest context; and the best
// quantization that would.
#pragma once

#include "core/base/progress.h"
#include "core/forward/gguf/type_policy.h"
#include "core/graph/meta_graph.h"
#include "core/load/answer/answer.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/request.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

// --- The verdict on one load, in a few words.

struct RunVerdict {
  // unknown: not answered yet. unjudged: nothing limits the load. tight: the weights fit, but not the pass
  // that follows them, or it has more tokens than the model has positions.
  enum class State : std::uint8_t { unknown, unjudged, fits, tight, incomplete, over } state = State::unknown;
  std::string words = {};  // "fits, 2.20 GiB left, about 70k tokens"
  // The first block over the budget, why the load cannot be done, or what is missing; escaped.
  std::string first = {};
  std::optional<std::uint64_t> left = {};     // bytes that it leaves of its budgets, if it fits
  std::optional<std::uint64_t> over = {};     // bytes that it is over, if it is
  std::optional<std::uint64_t> context = {};  // most tokens: load::LoadRow::context_max
};
// Why a model cannot be opened, without its path before it: for a row that names the path elsewhere.
std::string fault_text(std::string_view message, std::string_view path);
// "fits", "tight", ...
std::string_view run_state_id(RunVerdict::State state);

// Of the first row. The context is that of LoadRow::context_max, if the answer has it.
RunVerdict run_verdict(const load::LoadAnswer& judged);

// --- The question about any model.

// The load that is asked about, unless a person chooses another one.
inline constexpr std::string_view kUsualMethod = "staged_ring";
inline constexpr std::uint64_t kUsualPrompt = 512;  // tokens

// The load that is asked about of any model: into `target`, with a prompt of so many tokens.
load::LoadRequest usual_request(std::string_view target, std::uint64_t prompt);

// The first method and order of the request, without its pass where the model's operators are not known; with
// the largest context. Throws as load::answer() does.
load::LoadAnswer ask_whether_it_runs(const graph::MetaGraph& graph, load::LoadRequest request,
                                     const load::LoadEnvironment& environment, Progress& progress);

// A GGUF file of a model: the policy of its types, its size, and whether that runs.
struct QuantizedModel {
  std::string policy = {};
  std::uint64_t bytes = 0;  // of the weights
  RunVerdict verdict = {};
};

// From the largest to the smallest.
inline constexpr std::string_view kQuantizations[] = {"q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m", "q2_k"};
// Those that are smaller than the model, each laid out and asked about; none of a model that is not whole or
// that cannot be written as a GGUF file. `until_one_runs`: the others after it are left out.
std::vector<QuantizedModel> quantizations(const graph::MetaGraph& graph, const load::LoadRequest& request,
                                          std::span<const forward::TypePolicy> policies,
                                          const load::LoadEnvironment& environment, bool until_one_runs,
                                          Progress& progress);
// The first that runs; nothing if none does.
std::optional<QuantizedModel> best_quantization(const graph::MetaGraph& graph,
                                                const load::LoadRequest& request,
                                                std::span<const forward::TypePolicy> policies,
                                                const load::LoadEnvironment& environment, Progress& progress);

// --- A model on the disk, in one row: what it is, and whether it runs.

struct ModelRow {
  std::string format = {};       // "gguf"
  std::string type = {};         // in which most bytes of its weights are; empty: it has none
  std::uint64_t tensors = 0;     // weights
  std::uint64_t parameters = 0;  // as its architecture counts them
  std::uint64_t bytes = 0;       // of the weights, tied ones once
  RunVerdict verdict = {};
  std::optional<QuantizedModel> better = {};  // best_quantization(), if that was asked
  bool runs() const { return verdict.state == RunVerdict::State::fits; }
};
// Throws as ask_whether_it_runs() does.
ModelRow model_row(const graph::MetaGraph& graph, const load::LoadRequest& request,
                   const load::LoadEnvironment& environment, Progress& progress);

}  // namespace loadline::report
