// Applies an architecture to one model: the operators in order, each with the tensors that it uses.
#pragma once

#include "core/forward/family/architecture.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

// A tensor that the architecture expects.
struct BoundWeight {
  std::string name = {};  // as the file spells it, if a file has it
  Shape shape = {};       // from the configuration; Claims::disagreements lists other shapes in the file
  DType dtype = DType::f32;
  std::optional<TensorId> tensor = {};    // nothing without a file, or if the file lacks the tensor
  std::vector<TensorId> companions = {};  // of a packed weight, whose codes are `tensor`
};

// An operator of the computation. Values are numbered in the order in which they are made.
struct BoundOp {
  const OpLine* line = nullptr;
  std::uint32_t turn = 0;  // turn of an outermost numbered loop ("@layers.{i}"), over all loops; 0: none
  std::string name = {};   // the module path: "model.layers.3.self_attn.q_proj"
  std::vector<std::uint32_t> inputs = {};
  std::vector<std::uint32_t> outputs = {};
  std::vector<BoundWeight> weights = {};  // the weights of the line, in order; a bias follows its weight
  std::vector<std::pair<std::string, Datum>> attributes = {};
};

// The comparison of the tensors that the architecture expects with the tensors in the files.
struct Claims {
  std::vector<std::string> missing;  // expected, but in no file
  std::vector<TensorId> unclaimed;   // in a file, but neither expected nor ignored
  std::vector<TensorId> ignored;     // in parts of the model that the asset does not describe
  std::vector<TensorId> extra;       // stored buffers: neither parameters nor used
  std::vector<Note> disagreements;   // "config says [4096,4096], the file [4096,1024]"
  std::uint64_t unclaimed_bytes = 0;
};

struct BoundModel {
  const Architecture* architecture = nullptr;
  ModelConfig config;
  DType dtype = DType::f32;              // of the weights, from the configuration
  std::vector<InputSpec> inputs = {};    // input i is value i
  std::vector<std::string> values = {};  // the name of each value, unique
  std::vector<BoundOp> ops = {};
  std::vector<BoundWeight> stored = {};  // in the files, but used by no operator
  std::vector<BoundWeight> asked = {};   // without a file: every tensor that a file would hold, in order
  std::vector<BoundWeight> absent = {};  // exist at run time only
  std::vector<std::pair<std::string, std::string>> tied =
      {};  // names without a tensor of their own, each with the name whose tensor it uses
  std::vector<std::pair<std::string, Datum>> constants = {};  // the names defined by "let"
  Claims claims = {};
};

// With a graph, its tensors decide which optional tensors exist; without one (nullptr), the configuration
// decides. `flags` are names for expressions that hide the configuration's keys ("latent": 1). The
// architecture must outlive the result. Throws Error{malformed | limit} naming the configuration and the
// place in the asset that the configuration does not fit.
BoundModel bind_architecture(const Architecture& architecture, const ModelConfig& config,
                             const MetaGraph* graph,
                             const std::vector<std::pair<std::string, Datum>>& flags = {});

}  // namespace loadline
