// An architecture applied to one model: its operators in order, each with the tensors that it uses.
#pragma once

#include "core/forward/architecture.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

// A tensor that the architecture asks for.
struct BoundWeight {
  std::string name = {};  // as the file spells it, where a file has it
  Shape shape = {};       // what the configuration says; where the file differs, the claims tell it
  DType dtype = DType::f32;
  std::optional<TensorId> tensor = {};  // nothing without a file, or where it is missing
};

// An operator of the computation. Values are numbered in the order in which they are made.
struct BoundOp {
  const OpLine* line = nullptr;
  std::uint32_t turn = 0;  // of an outermost numbered loop ("@layers.{i}"), counted through; 0: of none
  std::string name = {};   // the place in the model: "model.layers.3.self_attn.q_proj"
  std::vector<std::uint32_t> inputs = {};
  std::vector<std::uint32_t> outputs = {};
  std::vector<BoundWeight> weights = {};  // the line's, in order; a bias stands behind its weight
  std::vector<std::pair<std::string, Datum>> attributes = {};
};

// Says what the file and the architecture have in common, and what not.
struct Claims {
  std::vector<std::string> missing;  // asked for, in no file
  std::vector<TensorId> unclaimed;   // in a file, asked for by nothing and not ignored
  std::vector<TensorId> ignored;     // belongs to parts that the asset does not describe
  std::vector<TensorId> extra;       // stored, but no parameter and not used
  std::vector<Note> disagreements;   // "config says [4096,4096], the file [4096,1024]"
  std::uint64_t unclaimed_bytes = 0;
};

struct BoundModel {
  const Architecture* architecture = nullptr;
  ModelConfig config;
  DType dtype = DType::f32;              // of the weights, as the configuration says
  std::vector<InputSpec> inputs = {};    // values 0, 1, ... are these
  std::vector<std::string> values = {};  // the name of each value, unique
  std::vector<BoundOp> ops = {};
  std::vector<BoundWeight> stored = {};  // kept in the files, used by no operator here
  std::vector<BoundWeight> asked = {};   // without a file: every tensor that it would hold, in order
  std::vector<BoundWeight> absent = {};  // exist at run time only
  std::vector<std::pair<std::string, std::string>> tied =
      {};  // names without a tensor of their own, and whose they use
  std::vector<std::pair<std::string, Datum>> constants = {};  // what "let" defines
  Claims claims = {};
};

// With a graph, its tensors decide what there is; without one (nullptr), the configuration does. `flags` are
// names that expressions see before the configuration's ("latent": 1). The architecture must outlive the
// result. Throws Error{malformed | limit} naming the configuration, and the place in the asset that it does
// not fit.
BoundModel bind_architecture(const Architecture& architecture, const ModelConfig& config,
                             const MetaGraph* graph,
                             const std::vector<std::pair<std::string, Datum>>& flags = {});

}  // namespace loadline
