// Resolves names to weights and values; scopes of nested graphs are a list, walked outwards.
#include "importers/onnx_forward.h"

#include "core/base/text.h"
#include "core/base/text_hash.h"
#include "importers/onnx_symbols.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

namespace loadline {
namespace {

std::string kind_of(const OnnxNode& node) {
  return node.domain.empty() || node.domain == "ai.onnx" ? node.op_type : node.domain + "." + node.op_type;
}

class ForwardBuilder {
 public:
  ForwardBuilder(const OnnxModel& model, const std::vector<std::optional<TensorId>>& tensor_of,
                 const std::vector<OnnxValue>& inferred, const OnnxStandIns& stand_ins)
      : model_(model),
        main_(model[*model.graph]),
        tensor_of_(tensor_of),
        stand_ins_(stand_ins),
        symbols_(forward_.symbols) {
    for (const auto* list : {&main_.values, &main_.outputs, &main_.inputs})
      for (const OnnxValue& value : *list) declared_[value.name] = &value.type;
    for (const OnnxValue& value : inferred) inferred_[value.name] = &value.type;
  }

  // Worth nothing if unusable() then gives a reason.
  ForwardGraph build() {
    add_weights(main_);
    for (const OnnxValue& input : main_.inputs)
      if (weights_.count(input.name) == 0)
        forward_.inputs.push_back(make_value(input.name, "the graph's inputs"));
    for (const OnnxNode& node : main_.nodes) add_op(node);
    for (const OnnxValue& output : main_.outputs)
      if (const auto made = values_.find(output.name); made != values_.end())
        forward_.outputs.push_back(made->second);
      else if (weights_.count(output.name) == 0)
        give_up("output '{}' is never made", output.name);
    return std::move(forward_);
  }

  const std::string& unusable() const { return unusable_; }

 private:
  // A graph inside an operator, with the names that it defines itself.
  struct Scope {
    const OnnxGraph* graph;
    std::optional<std::size_t> outer;  // in the list of scopes; nothing for one right under the main graph
    TextViewSet names;
  };
  // A tensor is used, a sparse one through both of its parts.
  struct Weight {
    std::optional<OnnxTensorId> values, indices;
  };

  // Keeps the first reason, names made safe to show.
  template <typename... Names>
  void give_up(fmt::string_view text, const Names&... names) {
    if (unusable_.empty()) unusable_ = fmt::format(fmt::runtime(text), safe_display(names, 100)...);
  }

  void add_weights(const OnnxGraph& graph) {
    for (const OnnxTensorId id : graph.initializers) weights_[model_.tensor(id).name] = {id, std::nullopt};
    for (const OnnxSparse& sparse : graph.sparse_initializers)
      if (sparse.values) weights_[model_.tensor(*sparse.values).name] = {sparse.values, sparse.indices};
  }

  ValueId make_value(const std::string& name, std::string_view where) {
    const ValueId id{static_cast<std::uint32_t>(forward_.values.size())};
    if (weights_.count(name) != 0 || !values_.try_emplace(name, id).second)
      give_up("'{}' is made twice, the second time by {}", name, where);
    forward_.values.push_back(described(name));
    return id;
  }

  Value described(const std::string& name) {
    Value value{name, std::nullopt, std::nullopt};
    if (const auto own = declared_.find(name); own != declared_.end()) {
      value.dtype = own->second->elem_type == 0 ? std::nullopt : dtype_from_onnx(own->second->elem_type);
      value.shape = symbols_.shape(*own->second);
    }
    if (const auto found = inferred_.find(name); found != inferred_.end()) {
      const std::int64_t code = stand_ins_.original(found->second->elem_type);
      if (!value.dtype && code != 0) value.dtype = dtype_from_onnx(code);
      if (value.shape) return value;
      value.shape = symbols_.shape(*found->second);
      value.inferred = value.shape.has_value();
    }
    return value;
  }

  void add_op(const OnnxNode& node) {
    Op op;
    op.kind = kind_of(node);
    op.name = node.name;
    // new ones: clearing takes as long as the largest operator so far
    used_values_ = {};
    used_weights_ = {};
    for (const std::string& input : node.inputs) use(input, op);
    use_attributes(node, op);
    use_nested(node, op);
    const std::string where = fmt::format("{} '{}'", op.kind, op.name);
    for (const std::string& output : node.outputs)
      if (!output.empty()) op.outputs.push_back(make_value(output, where));
    forward_.ops.push_back(std::move(op));
  }

  void use(const std::string& name, Op& op) {
    if (name.empty()) return;  // an optional input that is left out
    if (const auto made = values_.find(name); made != values_.end()) {
      if (used_values_.insert(static_cast<std::uint32_t>(made->second)).second)
        op.inputs.push_back(made->second);
    } else if (const auto weight = weights_.find(name); weight != weights_.end()) {
      use_tensor(weight->second.values, op);
      use_tensor(weight->second.indices, op);
    } else {
      give_up("{} '{}' uses '{}' before it is made", op.kind, op.name, name);
    }
  }

  void use_tensor(std::optional<OnnxTensorId> id, Op& op) {
    const auto tensor = id ? tensor_of_[static_cast<std::size_t>(*id)] : std::nullopt;
    if (tensor && used_weights_.insert(static_cast<std::uint32_t>(*tensor)).second)
      op.weights.push_back(*tensor);
  }
  void use_sparse(const OnnxSparse& sparse, Op& op) {
    use_tensor(sparse.values, op);
    use_tensor(sparse.indices, op);
  }

  void use_attributes(const OnnxNode& node, Op& op) {
    for (const OnnxAttribute& attribute : node.attributes) {
      use_tensor(attribute.tensor, op);
      for (const OnnxTensorId id : attribute.tensors) use_tensor(id, op);
      if (attribute.sparse) use_sparse(*attribute.sparse, op);
      for (const OnnxSparse& sparse : attribute.sparses) use_sparse(sparse, op);
    }
  }

  void use_nested(const OnnxNode& outer, Op& op) {
    std::vector<Scope> scopes;
    const auto add_scopes = [&](const OnnxNode& node, std::optional<std::size_t> within) {
      for (const OnnxAttribute& attribute : node.attributes) {
        if (attribute.graph) scopes.push_back(scope_of(*attribute.graph, within));
        for (const OnnxGraphId id : attribute.graphs) scopes.push_back(scope_of(id, within));
      }
    };
    add_scopes(outer, std::nullopt);
    for (std::size_t i = 0; i < scopes.size(); ++i) {  // grows while it is walked
      const OnnxGraph& graph = *scopes[i].graph;
      for (const OnnxTensorId id : graph.initializers) use_tensor(id, op);
      for (const OnnxSparse& sparse : graph.sparse_initializers) use_sparse(sparse, op);
      const auto use_outer = [&](const std::string& name) {
        std::optional<std::size_t> at = i;
        while (at && scopes[*at].names.count(name) == 0) at = scopes[*at].outer;
        if (!at) use(name, op);
      };
      for (const OnnxNode& node : graph.nodes) {
        for (const std::string& input : node.inputs) use_outer(input);
        use_attributes(node, op);
        add_scopes(node, i);
      }
      for (const OnnxValue& output : graph.outputs) use_outer(output.name);
    }
  }

  Scope scope_of(OnnxGraphId id, std::optional<std::size_t> outer) const {
    Scope scope{&model_[id], outer, {}};
    for (const OnnxValue& input : scope.graph->inputs) scope.names.insert(input.name);
    for (const OnnxTensorId tensor : scope.graph->initializers)
      scope.names.insert(model_.tensor(tensor).name);
    for (const OnnxSparse& sparse : scope.graph->sparse_initializers)
      if (sparse.values) scope.names.insert(model_.tensor(*sparse.values).name);
    for (const OnnxNode& node : scope.graph->nodes)
      scope.names.insert(node.outputs.begin(), node.outputs.end());
    return scope;
  }

  const OnnxModel& model_;
  const OnnxGraph& main_;
  const std::vector<std::optional<TensorId>>& tensor_of_;
  const OnnxStandIns& stand_ins_;
  ForwardGraph forward_;
  OnnxSymbols symbols_;  // after forward_, whose list it extends
  TextViewMap<const OnnxType*> declared_;
  TextViewMap<const OnnxType*> inferred_;
  TextViewMap<Weight> weights_;
  TextViewMap<ValueId> values_;
  std::string unusable_;  // why the operators cannot be used; empty if they can
  // of the operator being built
  std::unordered_set<std::uint32_t> used_values_;
  std::unordered_set<std::uint32_t> used_weights_;
};

}  // namespace

bool needs_inference(const OnnxModel& model) {
  if (!model.graph) return false;
  const OnnxGraph& main = model[*model.graph];
  const auto complete = [](const OnnxType& type) {
    return type.elem_type != 0 && type.has_shape &&
           std::all_of(type.dims.begin(), type.dims.end(),
                       [](const OnnxDim& dim) { return dim.value || !dim.name.empty(); });
  };
  TextViewSet known;
  for (const auto* list : {&main.values, &main.outputs})
    for (const OnnxValue& value : *list)
      if (complete(value.type)) known.insert(value.name);
  for (const OnnxNode& node : main.nodes)
    for (const std::string& output : node.outputs)
      if (!output.empty() && known.count(output) == 0) return true;
  return false;
}

void add_forward(const OnnxModel& model, const std::vector<std::optional<TensorId>>& tensor_of,
                 const std::vector<OnnxValue>& inferred, const OnnxStandIns& stand_ins, MetaGraph& graph) {
  if (!model.graph || model[*model.graph].nodes.empty()) return;
  ForwardBuilder builder(model, tensor_of, inferred, stand_ins);
  ForwardGraph forward = builder.build();
  if (!builder.unusable().empty()) {
    graph.notes.push_back(
        {Severity::warning, {}, fmt::format("the operators are left out: {}", builder.unusable())});
    return;
  }
  graph.forward = std::move(forward);
  const std::vector<Value>& values = graph.forward->values;
  const auto unknown = std::count_if(values.begin(), values.end(), [](const Value& v) { return !v.shape; });
  if (unknown > 0)
    graph.notes.push_back({Severity::info,
                           {},
                           fmt::format("the shapes of {} of {} values are unknown", unknown, values.size())});
}

}  // namespace loadline
