// Walks all graphs of a model without recursion, with a list of the graphs still to visit.
#include "importers/onnx/names.h"

#include "core/base/error.h"
#include "core/graph/text_hash.h"
#include "importers/unique_names.h"

#include <fmt/format.h>

namespace loadline {
namespace {

class Namer {
 public:
  Namer(const OnnxModel& model, std::string_view file)
      : model_(model), file_(file), names_(model.tensors.size()) {}

  std::vector<std::string> run() {
    if (model_.graph) add_graph(*model_.graph, "");
    visit_all();  // the graph itself first: its names stay as they are
    for (const OnnxFunction& function : model_.functions) {
      const std::string path = function.name + "/";
      for (const OnnxAttribute& attribute : function.attributes) name_attribute(attribute, path);
      add_graph(function.body, path);
    }
    for (std::size_t i = 0; i < model_.trainings.size(); ++i) {
      const std::string path = i == 0 ? "training/" : fmt::format("training/{}/", i);
      const OnnxTraining& training = model_.trainings[i];
      if (training.initialization) add_graph(*training.initialization, path + "initialization/");
      if (training.algorithm) add_graph(*training.algorithm, path + "algorithm/");
    }
    visit_all();
    return std::move(names_);
  }

 private:
  struct Visit {
    OnnxGraphId graph;
    std::string path;
  };

  void add_graph(OnnxGraphId graph, std::string path) {
    charge(path);
    to_visit_.push_back({graph, std::move(path)});
  }

  void charge(std::string_view text) {
    bytes_ += text.size();
    if (bytes_ > kMostNameBytes)
      throw Error(ErrorCode::limit, {.file = std::string(file_)},
                  "the names of its tensors take more than {} bytes", kMostNameBytes);
  }

  void visit_all() {
    while (!to_visit_.empty()) {
      const Visit visit = std::move(to_visit_.back());
      to_visit_.pop_back();
      const OnnxGraph& graph = model_[visit.graph];
      name_initializers(graph, visit.path);
      for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const OnnxNode& node = graph.nodes[i];
        if (node.attributes.empty()) continue;
        const std::string path = visit.path + node_name(node, i) + "/";
        charge(path);
        for (const OnnxAttribute& attribute : node.attributes) name_attribute(attribute, path);
      }
    }
  }

  static std::string node_name(const OnnxNode& node, std::size_t position) {
    if (!node.name.empty()) return node.name;
    if (!node.outputs.empty() && !node.outputs.front().empty()) return node.outputs.front();
    return fmt::format("{}_{}", node.op_type, position);
  }

  void name_initializers(const OnnxGraph& graph, const std::string& path) {
    TextViewSet here;
    const auto own_name = [&](OnnxTensorId id) -> const std::string& {
      const OnnxTensor& tensor = model_.tensor(id);
      if (!here.insert(tensor.name).second)
        throw Error(ErrorCode::malformed,
                    {.file = std::string(file_), .byte = tensor.at, .tensor = path + tensor.name},
                    "two initialisers of one graph have this name");
      return tensor.name;
    };
    for (const OnnxTensorId id : graph.initializers) set(id, path + own_name(id));
    for (const OnnxSparse& sparse : graph.sparse_initializers) {
      const std::string name = path + (sparse.values ? own_name(*sparse.values) : "");
      if (sparse.values) set(*sparse.values, name);
      if (sparse.indices) set(*sparse.indices, name + "/indices");
    }
  }

  void name_sparse(const OnnxSparse& sparse, const std::string& path) {
    if (sparse.values) set(*sparse.values, path + "/values");
    if (sparse.indices) set(*sparse.indices, path + "/indices");
  }

  void name_attribute(const OnnxAttribute& attribute, const std::string& path) {
    const std::string name = path + attribute.name;
    if (attribute.tensor) set(*attribute.tensor, name);
    if (attribute.graph) add_graph(*attribute.graph, name + "/");
    if (attribute.sparse) name_sparse(*attribute.sparse, name);
    for (std::size_t i = 0; i < attribute.tensors.size(); ++i)
      set(attribute.tensors[i], fmt::format("{}/{}", name, i));
    for (std::size_t i = 0; i < attribute.graphs.size(); ++i)
      add_graph(attribute.graphs[i], fmt::format("{}/{}/", name, i));
    for (std::size_t i = 0; i < attribute.sparses.size(); ++i)
      name_sparse(attribute.sparses[i], fmt::format("{}/{}", name, i));
  }

  void set(OnnxTensorId id, std::string name) {
    charge(name);
    const std::size_t asked = name.size();
    std::string& given = names_[static_cast<std::size_t>(id)];
    given = taken_.take(std::move(name));
    if (given.size() != asked) charge(given);
  }

  const OnnxModel& model_;
  std::string_view file_;
  std::vector<std::string> names_;
  std::vector<Visit> to_visit_;
  UniqueNames taken_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::vector<std::string> onnx_tensor_names(const OnnxModel& model, std::string_view file) {
  return Namer(model, file).run();
}

}  // namespace loadline
