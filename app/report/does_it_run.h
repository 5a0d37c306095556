// Whether a model runs where it is asked to: its weights, a prompt, the largest context, the best
// quantization that would; and how the answers are kept from one run of the program to the next.
#pragma once

#include "core/base/progress.h"
#include "core/forward/gguf/type_policy.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/load/answer/answer.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/request.h"
#include "core/view/layouts.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::report {

// --- The verdict on one load, in a few words.

struct RunVerdict {
  // unknown: not answered yet. unjudged: nothing limits the load. estimated: it fits as far as all is
  // understood. tight: the weights fit, but not the pass that follows them, or it has more tokens than the
  // model has positions, or its needs are not known.
  enum class State : std::uint8_t {
    unknown,
    unjudged,
    fits,
    estimated,
    tight,
    incomplete,
    over
  } state = State::unknown;
  std::string words = {};  // "fits, 2.20 GiB left, about 70k tokens"
  // The first block over the budget, why the load cannot be done, what is missing, or what the estimate does
  // not account for; escaped. `about` says it in a sentence.
  std::string first = {}, about = {};
  std::optional<std::uint64_t> left = {};       // bytes that it leaves of its budgets, if it fits
  std::optional<std::uint64_t> over = {};       // bytes that it is over, if it is
  std::optional<std::uint64_t> context = {};    // most tokens that there is room and a position for
  std::optional<std::uint64_t> positions = {};  // of the model
  bool whole = true;                            // the model is
  bool too_long = false;                        // the request has more tokens than the model has positions
  bool fits() const { return state == State::fits || state == State::estimated; }
};
// Why a model cannot be opened, without its path before it: for a row that names the path elsewhere.
std::string fault_text(std::string_view message, std::string_view path);
// "about 70k tokens": two digits, rounded down.
std::string tokens_text(std::uint64_t count);
// "70k": two digits, rounded down.
std::string rounded_tokens(std::uint64_t count);
// "512", "8,192", "32k", "1M" as people write tokens, in steps of 1,024; nothing for anything else.
std::optional<std::uint64_t> tokens_of(std::string text);
// "fits", "tight", ...
std::string_view run_state_id(RunVerdict::State state);

// Of the first row; with the context, if the answer has it.
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

// "Q4_K_M": a type of numbers or a quantization ("q4_k_m") as files spell it.
std::string type_title(std::string_view word);

// From the largest to the smallest.
inline constexpr std::string_view kQuantizations[] = {"q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m", "q2_k"};
struct TriedQuantizations {
  std::vector<QuantizedModel> models = {};  // those that are smaller than the model
  std::string missing = {};                 // why there are none: "it cannot be written as a GGUF file"
};
// Each is laid out as a converter would write it, and asked about. `until_one_runs`: the others after it are
// left out.
TriedQuantizations quantizations(const graph::MetaGraph& graph, const load::LoadRequest& request,
                                 std::span<const forward::TypePolicy> policies,
                                 const load::LoadEnvironment& environment, bool until_one_runs,
                                 Progress& progress);

// --- A model on the disk, in one row: what it is, and whether it runs.

struct ModelRow {
  std::string format = {};       // "gguf"
  std::string type = {};         // in which most bytes of its weights are; empty: it has none
  std::uint64_t tensors = 0;     // weights
  std::uint64_t parameters = 0;  // as its architecture counts them
  std::uint64_t bytes = 0;       // of the weights, tied ones once
  RunVerdict verdict = {};
  // Set by find_better(): the largest of kQuantizations that runs, or why there is none.
  std::optional<QuantizedModel> better = {};
  std::string no_better = {};
};
// Throws as ask_whether_it_runs() does.
ModelRow model_row(const graph::MetaGraph& graph, const load::LoadRequest& request,
                   const load::LoadEnvironment& environment, Progress& progress);

// Of a model that does not run, unless it is for want of positions. Throws Error{canceled}.
void find_better(ModelRow& row, const graph::MetaGraph& graph, const load::LoadRequest& request,
                 std::span<const forward::TypePolicy> policies, const load::LoadEnvironment& environment,
                 Progress& progress);

// Why a model of a store is not whole, from what the store says (importers::StoredModel) and from what was
// read of it; empty if it is whole.
std::string missing_part(const std::string& incomplete, bool unfinished, const std::optional<ModelRow>& row);

// --- What is read of one model.

// A rectangle of a thumbnail, in a picture of kThumbWidth x kThumbHeight.
inline constexpr double kThumbWidth = 56, kThumbHeight = 34;
struct ThumbTile {
  view::Rect rect = {};
  graph::Role role{};
};

struct ModelFacts {
  // Its verdict is unknown where a header was read for another question and this one is not answered yet.
  std::optional<ModelRow> row = {};
  std::string fault = {};  // why there is no row
  std::vector<ThumbTile> map = {};
  bool tried_types = false;  // row->better and row->no_better are what they will be
  bool is_judged() const { return !row || row->verdict.state != RunVerdict::State::unknown; }
};

// What the models of a list are asked: whether they run on this target with so many tokens.
struct RunQuestion {
  load::Target target = {};
  std::uint64_t prompt = kUsualPrompt;  // tokens of the prompt
  std::uint64_t context = 0;            // in all, with those in the cache before the prompt; 0: the prompt

  load::LoadRequest request() const;
  std::uint64_t tokens() const { return context > 0 ? context : prompt; }
  // Questions with the same text have the same answers.
  std::string text() const;
};
// The memory that this machine can give changes all the time: rounded down by at most 1/64, so that a verdict
// holds for a while. Other targets stay as they are.
load::Target steadied(load::Target target);

// Without trying quantizations. Throws as model_row() does.
ModelFacts model_facts(const graph::MetaGraph& graph, const RunQuestion& question,
                       const load::LoadEnvironment& environment, Progress& progress);

// --- Facts kept by the model's path, the size of its files and the time of their last change.

class KeptFacts {
 public:
  struct Key {
    std::string path = {};
    std::uint64_t bytes = 0;
    std::int64_t changed = 0;  // as importers::StoredModel has them
  };
  // By the whole path, and with the time of the folder: what lies beside a file belongs to its model, too.
  static Key key_of(const std::string& path, std::uint64_t bytes, std::int64_t changed);

  // `program` tells programs apart whose answers may differ: what another one has kept is ignored. An empty
  // `file`: nothing is kept on the disk.
  KeptFacts(std::string file, std::string program) : file_(std::move(file)), program_(std::move(program)) {}
  KeptFacts() = default;

  // Adds what the file holds; nothing of what is damaged or of another program. Throws nothing.
  void read();
  // Replaces the file as a whole, by what it holds now and what was kept since. Throws Error{io}.
  void write();
  bool is_changed() const { return changed_; }  // since the last write()
  void mark_written() { changed_ = false; }     // a copy is about to be

  // Null: nothing is known of these files. Without a verdict if another question was answered.
  std::shared_ptr<const ModelFacts> find(const Key& key, const std::string& question) const;
  void keep(const Key& key, const std::string& question, std::shared_ptr<const ModelFacts> facts);
  std::size_t size() const { return entries_.size(); }

  // The content of the file, and what a text adds: for tests of damaged texts, too.
  std::string text() const;
  void add_text(std::string_view text);

 private:
  struct Answer {
    std::string question;
    std::shared_ptr<const ModelFacts> facts;
  };
  struct Entry {
    std::uint64_t bytes = 0;
    std::int64_t changed = 0;
    std::vector<Answer> answers = {};  // the newest first; with the same row but for the verdict
  };

  std::string file_, program_;
  std::map<std::string, Entry, std::less<>> entries_;  // by path
  bool changed_ = false;
};

}  // namespace loadline::report
