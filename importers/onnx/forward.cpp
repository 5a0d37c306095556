// Resolves names to weights and values. The scopes of nested graphs form a list that is walked outwards.
#include "importers/onnx/forward.h"

#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/graph/op_place.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>

#include <fmt/core.h>

namespace loadline::importers {
namespace {

std::string kind_of(const std::string& domain, const std::string& type) {
  return is_onnx_domain(domain) ? type : domain + "." + type;
}
std::string kind_of(const OnnxNode& node) { return kind_of(node.domain, node.op_type); }
// What a call and its function have in common.
using FunctionKey = std::pair<std::string, std::string>;  // kind and overload

// The branch that an If takes when it holds is the first, as graph::body_name() has it.
std::vector<OnnxGraphId> graphs_in(const OnnxNode& node) {
  std::vector<OnnxGraphId> found;
  std::optional<std::size_t> then;
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.graph && attribute.name == "then_branch" && !then) then = found.size();
    if (attribute.graph) found.push_back(*attribute.graph);
    found.insert(found.end(), attribute.graphs.begin(), attribute.graphs.end());
  }
  if (then) {
    const auto at = found.begin() + static_cast<std::ptrdiff_t>(*then);
    std::rotate(found.begin(), at, at + 1);
  }
  return found;
}

constexpr std::string_view kTooDeep = "left out, as it is nested more than 8 deep";
static_assert(graph::kMostBodyDepth == 8);

// The settings of a node, with what the file says about it.
std::vector<std::pair<std::string, graph::Attribute>> settings_of(const OnnxNode& node) {
  std::vector<std::pair<std::string, graph::Attribute>> settings = node.settings;
  if (!node.doc.empty()) settings.emplace_back(std::string(1, graph::kForPeople), node.doc);
  return settings;
}

bool is_complete(const OnnxType& type) {
  return type.elem_type != 0 && type.has_shape && std::ranges::all_of(type.dims, [](const OnnxDim& dim) {
           return dim.value ? *dim.value >= 0 : !dim.name.empty();
         });
}

class ForwardBuilder {
 public:
  ForwardBuilder(const OnnxModel& model, const std::vector<std::optional<graph::TensorId>>& tensor_of,
                 const OnnxModel& inferred, const OnnxStandIns& stand_ins, const OpenPictures& pictures)
      : model_(model),
        main_(model[*model.graph]),
        tensor_of_(tensor_of),
        stand_ins_(stand_ins),
        pictures_(pictures),
        symbols_(forward_) {
    types_.declare(main_);
    symbols_.take(pictures.sides);
    if (inferred.graph) answer_ = {&inferred, &inferred[*inferred.graph], 0};
    if (answer_.graph != nullptr) types_.infer(*answer_.graph);
    for (const auto& property : inferred.properties)
      if (const std::string_view key = property.first; key.starts_with(kUnfollowed))
        unfollowed_.insert(key.substr(kUnfollowed.size()));
      else
        unread_.insert(property.first);
    for (const OnnxFunction& function : model.functions)
      functions_.emplace(FunctionKey(kind_of(function.domain, function.name), function.overload), &function);
  }

  // The result means nothing if unusable() then gives a reason.
  graph::ForwardGraph build() {
    for_each_weight(main_,
                    [this](std::string_view name, const OnnxSparse& parts) { weights_[name] = parts; });
    std::vector<const OnnxValue*> inputs;
    for (const OnnxValue& input : main_.inputs)
      if (weights_.count(input.name) == 0) inputs.push_back(&input);
    symbols_.guess(inputs);
    for (const auto& [domain, version] : model_.opsets)
      if (is_onnx_domain(domain)) forward_.opset = version;
    for (const OnnxValue* const input : inputs)
      forward_.inputs.push_back(make_value(input->name, "the graph's inputs"));
    for (const OnnxNode& node : main_.nodes) add_op(node);
    forward_.unaccounted.assign(unaccounted_.begin(), unaccounted_.end());
    for (const OnnxValue& output : main_.outputs)
      if (const auto made = values_.find(output.name); made != values_.end())
        forward_.outputs.push_back(made->second);
      else if (weights_.count(output.name) == 0)
        give_up("output '{}' is never made", output.name);
    return std::move(forward_);
  }

  const std::string& unusable() const { return unusable_; }
  // Values inside of functions, whose shapes follow from each call: how many, and how many of them have none.
  struct Inside {
    std::size_t values = 0, without_shape = 0;
  };
  const Inside& inside_functions() const { return inside_functions_; }

 private:
  // The types of values by name.
  struct Types {
    graph::TextViewMap<const OnnxType*> declared = {};
    graph::TextViewMap<const OnnxType*> inferred = {};

    void declare(const OnnxGraph& graph) {
      for (const auto* list : {&graph.values, &graph.outputs, &graph.inputs})
        for (const OnnxValue& value : *list) declared[value.name] = &value.type;
    }
    void infer(const OnnxGraph& graph) {
      for (const auto* list : {&graph.values, &graph.outputs})
        for (const OnnxValue& value : *list) inferred[value.name] = &value.type;
    }
  };
  // A graph in the answer of shape inference: it has only those nodes that contain graphs.
  struct Answer {
    const OnnxModel* model = nullptr;
    const OnnxGraph* graph = nullptr;
    std::size_t at = 0;

    const OnnxNode* next_holder() {
      return graph == nullptr || at == graph->nodes.size() ? nullptr : &graph->nodes[at++];
    }
  };
  // A graph inside an operator, with the names that it defines itself.
  struct Scope {
    const OnnxGraph* graph;
    std::optional<std::size_t> outer;  // in the list of scopes; nothing for one right under the main graph
    graph::TextViewSet names;
  };

  // Keeps the first reason, names made safe to show.
  template <typename... Names>
  void give_up(fmt::string_view text, const Names&... names) {
    if (unusable_.empty()) unusable_ = fmt::format(fmt::runtime(text), safe_display(names, 100)...);
  }

  // Calls `take` with the name and the parts of every weight of a graph; a dense one has no indices.
  template <typename Consume>
  void for_each_weight(const OnnxGraph& graph, Consume take) const {
    for (const OnnxTensorId id : graph.initializers)
      take(model_.tensor(id).name, OnnxSparse{id, std::nullopt});
    for (const OnnxSparse& sparse : graph.sparse_initializers)
      if (sparse.values) take(model_.tensor(*sparse.values).name, sparse);
  }

  graph::ValueId make_value(const std::string& name, std::string_view where) {
    const graph::ValueId id{static_cast<std::uint32_t>(forward_.values.size())};
    if (weights_.count(name) != 0 || !values_.try_emplace(name, id).second)
      give_up("'{}' is made twice, the second time by {}", name, where);
    forward_.values.push_back(described(name, types_));
    return id;
  }

  // The meaning of the names that a body defines itself.
  struct Inner {
    const Inner* outer;  // null: the main graph is around it
    graph::TextViewMap<graph::ValueId> values = {};
    graph::TextViewMap<OnnxSparse> weights = {};
    Types types = {};
    bool of_function = false;  // which sees no names from outside
  };

  graph::ValueId make_inner(const std::string& name, Inner& scope) {
    const graph::ValueId id{static_cast<std::uint32_t>(forward_.values.size())};
    forward_.values.push_back(described(name, scope.types));
    count_if_inside();
    scope.values[name] = id;
    return id;
  }
  // The last value, where it is one of a function.
  void count_if_inside() {
    if (in_functions_ == 0) return;
    ++inside_functions_.values;
    if (!forward_.values.back().shape) ++inside_functions_.without_shape;
  }
  // Nothing for weights, and for names that use_nested() has reported as unusable.
  std::optional<graph::ValueId> inner_value(const std::string& name, const Inner& scope) const {
    for (const Inner* at = &scope; at != nullptr; at = at->outer) {
      if (const auto found = at->values.find(name); found != at->values.end()) return found->second;
      if (at->weights.count(name) != 0 || at->of_function) return std::nullopt;
    }
    const auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  // The weight of that name, unless a value inside of it has the name.
  const OnnxSparse* inner_weight(const std::string& name, const Inner& scope) const {
    for (const Inner* at = &scope; at != nullptr; at = at->outer) {
      if (at->values.find(name) != at->values.end()) return nullptr;
      if (const auto found = at->weights.find(name); found != at->weights.end()) return &found->second;
      if (at->of_function) return nullptr;
    }
    return weight_called(name);
  }

  // The inputs of an operator in a body, at their positions.
  void use_inner(const OnnxNode& node, const Inner& scope, graph::Op& op) {
    used_weights_ = {};
    for (const std::string& input : node.inputs) {
      graph::Argument& argument = op.arguments.emplace_back();
      argument.value = inner_value(input, scope);
      if (argument.value) op.inputs.push_back(*argument.value);
      const OnnxSparse* const weight = argument.value || input.empty() ? nullptr : inner_weight(input, scope);
      if (weight == nullptr || !weight->values) continue;
      argument.weight = tensor_of_[static_cast<std::size_t>(*weight->values)];
      use_sparse(*weight, op);
    }
    use_attributes(node, op);
  }

  // `around`: the inferred types of the graph that contains the node.
  void add_bodies(const OnnxNode& node, const Inner* outer, std::size_t depth, Answer& around,
                  graph::Op& op) {
    const std::vector<OnnxGraphId> graphs = graphs_in(node);
    if (graphs.empty()) return add_function(node, outer, depth, op);
    const OnnxNode* const same = around.next_holder();
    const std::vector<OnnxGraphId> inferred = same == nullptr ? std::vector<OnnxGraphId>() : graphs_in(*same);
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      Answer answer = {around.model, nullptr, 0};
      if (inferred.size() == graphs.size()) answer.graph = &(*around.model)[inferred[i]];
      add_body(model_[graphs[i]], outer, depth, answer, op);
    }
  }

  void add_body(const OnnxGraph& graph, const Inner* outer, std::size_t depth, Answer answer, graph::Op& op) {
    if (depth == graph::kMostBodyDepth) {  // something that nobody knows
      op.attributes.emplace_back(graph::kNotDrawn, std::string(kTooDeep));
      op.temporaries.push_back(graph::ValueId{static_cast<std::uint32_t>(forward_.values.size())});
      forward_.values.push_back({.name = "a graph in it", .lane = graph::Lane::temporary});
      count_if_inside();
      return;
    }
    Inner scope = {.outer = outer};
    for_each_weight(graph,
                    [&](std::string_view name, const OnnxSparse& parts) { scope.weights[name] = parts; });
    scope.types.declare(graph);
    if (answer.graph != nullptr) scope.types.infer(*answer.graph);
    graph::Body body;
    for (const OnnxValue& input : graph.inputs)
      if (scope.weights.count(input.name) == 0) body.inputs.push_back(make_inner(input.name, scope));
    add_nodes(graph, scope, depth, answer, body);
    for (const OnnxValue& output : graph.outputs)
      if (const auto id = inner_value(output.name, scope)) body.outputs.push_back(*id);
    op.bodies.push_back(static_cast<std::uint32_t>(forward_.bodies.size()));
    forward_.bodies.push_back(std::move(body));
  }

  // Of a graph and of all graphs inside it; those of functions that they call are not among them.
  struct Amount {
    std::size_t nodes = 0;
    std::size_t bytes = 0;  // of names
  };
  Amount amount_below(OnnxGraphId id) {
    const auto known = amounts_below_.find(id);
    if (known != amounts_below_.end()) return known->second;
    Amount amount;
    for (std::vector<OnnxGraphId> below = {id}; !below.empty();) {
      const OnnxGraph& graph = model_[below.back()];
      below.pop_back();
      amount.nodes += graph.nodes.size();
      for (const OnnxNode& node : graph.nodes) {
        amount.bytes += node.name.size();
        for (const std::string& output : node.outputs) amount.bytes += output.size();
        for (const OnnxGraphId inner : graphs_in(node)) below.push_back(inner);
      }
    }
    return amounts_below_[id] = amount;
  }

  // What the file says about an operator that it defines itself, once for each call. For people: the pass
  // runs the call as one operator.
  void add_function(const OnnxNode& node, const Inner* outer, std::size_t depth, graph::Op& op) {
    const auto found =
        functions_.empty() ? functions_.end() : functions_.find(FunctionKey(op.kind, node.overload));
    if (found == functions_.end()) return;
    const OnnxFunction& function = *found->second;
    const OnnxGraph& graph = model_[function.body];
    constexpr std::size_t kMostNodes = 20'000, kMostBytes = std::size_t{16} << 20;
    const bool deep = depth == graph::kMostBodyDepth;
    const auto [nodes, bytes] = amount_below(function.body);
    if (deep || nodes > kMostNodes - nodes_of_functions_ || bytes > kMostBytes - bytes_of_functions_) {
      op.attributes.emplace_back(
          graph::kNotDrawn,
          deep ? std::string(kTooDeep) : "left out, as the functions of the file have too many operators");
      return;
    }
    nodes_of_functions_ += nodes;
    bytes_of_functions_ += bytes;
    Inner scope = {.outer = nullptr, .of_function = true};
    for (std::size_t i = 0; i < std::min(function.inputs.size(), node.inputs.size()); ++i) {
      const std::string& given = node.inputs[i];
      if (given.empty()) continue;
      if (const auto value = outer != nullptr ? inner_value(given, *outer) : argument(given).value)
        scope.values[function.inputs[i]] = *value;
      else if (const OnnxSparse* const weight =
                   outer != nullptr ? inner_weight(given, *outer) : weight_called(given))
        scope.weights[function.inputs[i]] = *weight;
    }
    op.attributes.emplace_back(graph::kFunction, std::string("defined in this file"));
    graph::Body body;
    Answer unknown;
    ++in_functions_;
    add_nodes(graph, scope, depth, unknown, body);
    --in_functions_;
    for (const std::string& output : function.outputs)
      if (const auto id = inner_value(output, scope)) body.outputs.push_back(*id);
    op.bodies.push_back(static_cast<std::uint32_t>(forward_.bodies.size()));
    forward_.bodies.push_back(std::move(body));
  }

  void add_nodes(const OnnxGraph& graph, Inner& scope, std::size_t depth, Answer& answer, graph::Body& body) {
    for (const OnnxNode& node : graph.nodes) {
      graph::Op inner{.kind = kind_of(node), .name = node.name, .inputs = {}, .weights = {}, .outputs = {}};
      inner.attributes = settings_of(node);
      use_inner(node, scope, inner);
      add_bodies(node, &scope, depth + 1, answer, inner);
      for (const std::string& output : node.outputs)
        if (!output.empty()) inner.outputs.push_back(make_inner(output, scope));
      if (in_functions_ == 0) account(inner);
      body.ops.push_back(std::move(inner));
    }
  }

  graph::Value typed(const std::string& name, const Types& types) {
    graph::Value value{name, std::nullopt, std::nullopt};
    bool has_rank = false;
    if (const auto own = types.declared.find(name); own != types.declared.end()) {
      value.dtype = own->second->elem_type == 0
                        ? std::nullopt
                        : graph::dtype_from(&graph::DTypeInfo::onnx, own->second->elem_type);
      value.shape = symbols_.shape(*own->second);
      has_rank = own->second->has_shape;
    }
    if (const auto found = types.inferred.find(name); found != types.inferred.end()) {
      const std::int64_t code = stand_ins_.original(found->second->elem_type);
      if (!value.dtype && code != 0) value.dtype = graph::dtype_from(&graph::DTypeInfo::onnx, code);
      // some writers call a value a scalar where they know no shape
      const bool is_doubtful = value.shape && value.shape->empty() && !found->second->dims.empty();
      if (value.shape && !is_doubtful) return value;
      value.shape = symbols_.shape(*found->second);
      const auto varies = [](const graph::SizePoly& size) { return !size.constant(); };
      value.half_declared =
          has_rank && !is_doubtful && value.shape && std::ranges::any_of(*value.shape, varies);
      if (&types == &types_ && value.shape) value.half_declared |= unfollowed_.contains(name);
    }
    return value;
  }

  graph::Value described(const std::string& name, const Types& types) {
    graph::Value value = typed(name, types);
    if (!pictures_.sides.empty() && value.shape) value.half_declared |= !pictures_.known.contains(name);
    return value;
  }

  void add_op(const OnnxNode& node) {
    graph::Op op;
    op.kind = kind_of(node);
    op.name = node.name;
    // new containers: clearing takes time proportional to the largest operator so far
    used_values_ = {};
    used_weights_ = {};
    op.attributes = settings_of(node);
    for (const std::string& input : node.inputs) {
      op.arguments.push_back(argument(input));
      use(input, op);
    }
    use_attributes(node, op);
    use_nested(node, op);
    add_bodies(node, nullptr, 0, answer_, op);
    const std::string where = fmt::format("{} '{}'", op.kind, op.name);
    for (const std::string& output : node.outputs)
      if (!output.empty()) op.outputs.push_back(make_value(output, where));
    account(op);
    forward_.ops.push_back(std::move(op));
  }

  // An attribute that shape inference does not know matters where no shape is declared.
  void account(const graph::Op& op) {
    const bool known = std::ranges::all_of(
        op.outputs, [&](graph::ValueId id) { return graph::value_bytes(forward_.value(id)).has_value(); });
    for (const auto& [name, value] : op.attributes)
      if (std::string part = op.kind + "." + name; !known && unread_.contains(part))
        unaccounted_.insert(std::move(part));
  }

  // What a name among an operator's inputs stands for; nothing for an optional input that is left out.
  graph::Argument argument(const std::string& name) const {
    graph::Argument found;
    if (const auto made = values_.find(name); made != values_.end())
      found.value = made->second;
    else if (const auto weight = weights_.find(name); weight != weights_.end() && weight->second.values)
      found.weight = tensor_of_[static_cast<std::size_t>(*weight->second.values)];
    return found;
  }

  const OnnxSparse* weight_called(const std::string& name) const {
    const auto found = weights_.find(name);
    return found == weights_.end() || values_.count(name) != 0 ? nullptr : &found->second;
  }

  void use(const std::string& name, graph::Op& op) {
    if (name.empty()) return;  // an optional input that is left out
    if (const auto made = values_.find(name); made != values_.end()) {
      if (used_values_.insert(static_cast<std::uint32_t>(made->second)).second)
        op.inputs.push_back(made->second);
    } else if (const auto weight = weights_.find(name); weight != weights_.end()) {
      use_sparse(weight->second, op);
    } else {
      give_up("{} '{}' uses '{}' before it is made", op.kind, op.name, name);
    }
  }

  void use_tensor(std::optional<OnnxTensorId> id, graph::Op& op) {
    const auto tensor = id ? tensor_of_[static_cast<std::size_t>(*id)] : std::nullopt;
    if (tensor && used_weights_.insert(static_cast<std::uint32_t>(*tensor)).second)
      op.weights.push_back(*tensor);
  }
  void use_sparse(const OnnxSparse& sparse, graph::Op& op) {
    use_tensor(sparse.values, op);
    use_tensor(sparse.indices, op);
  }

  void use_attributes(const OnnxNode& node, graph::Op& op) {
    for (const OnnxAttribute& attribute : node.attributes) {
      use_tensor(attribute.tensor, op);
      for (const OnnxTensorId id : attribute.tensors) use_tensor(id, op);
      if (attribute.sparse) use_sparse(*attribute.sparse, op);
      for (const OnnxSparse& sparse : attribute.sparses) use_sparse(sparse, op);
    }
  }

  void use_nested(const OnnxNode& outer, graph::Op& op) {
    std::vector<Scope> scopes;
    const auto add_scopes = [&](const OnnxNode& node, std::optional<std::size_t> within) {
      for (const OnnxGraphId id : graphs_in(node)) scopes.push_back(scope_of(id, within));
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
    for_each_weight(*scope.graph,
                    [&](std::string_view name, const OnnxSparse&) { scope.names.insert(name); });
    for (const OnnxNode& node : scope.graph->nodes)
      scope.names.insert(node.outputs.begin(), node.outputs.end());
    return scope;
  }

  const OnnxModel& model_;
  const OnnxGraph& main_;
  const std::vector<std::optional<graph::TensorId>>& tensor_of_;
  const OnnxStandIns& stand_ins_;
  const OpenPictures& pictures_;
  graph::ForwardGraph forward_;
  OnnxSymbols symbols_;  // after forward_, whose list it extends
  Types types_;
  Answer answer_;
  graph::TextViewMap<OnnxSparse> weights_;
  graph::TextViewMap<graph::ValueId> values_;
  std::map<FunctionKey, const OnnxFunction*> functions_;
  Inside inside_functions_;
  std::size_t in_functions_ = 0, nodes_of_functions_ = 0;
  std::size_t bytes_of_functions_ = 0;
  std::map<OnnxGraphId, Amount> amounts_below_;              // of functions
  std::set<std::string, std::less<>> unread_, unaccounted_;  // "Resize.axes"
  graph::TextViewSet unfollowed_;                            // values whose shape onnxruntime does not infer
  std::string unusable_;  // why the operators cannot be used; empty if they can
  // of the operator being built
  std::unordered_set<std::uint32_t> used_values_;
  std::unordered_set<std::uint32_t> used_weights_;
};

// How the library calls a size that it could not infer.
bool is_invented(const OnnxDim& dim) { return dim.name.starts_with("unk__"); }

}  // namespace

std::vector<std::string> values_with_shapes(const OnnxModel& model) {
  std::vector<std::string> names;
  if (!model.graph) return names;
  const OnnxGraph& main = model[*model.graph];
  for (const auto* list : {&main.inputs, &main.values, &main.outputs})
    for (const OnnxValue& value : *list)
      if (is_complete(value.type) && std::ranges::none_of(value.type.dims, is_invented))
        names.push_back(value.name);
  return names;
}

bool needs_inference(const OnnxModel& model) {
  if (!model.graph) return false;
  const OnnxGraph& main = model[*model.graph];
  graph::TextViewSet known;
  for (const auto* list : {&main.values, &main.outputs})
    for (const OnnxValue& value : *list)
      if (is_complete(value.type)) known.insert(value.name);
  const auto is_unknown = [&](const std::string& output) {
    return !output.empty() && known.count(output) == 0;
  };
  return std::ranges::any_of(main.nodes, [&](const OnnxNode& node) {
    return !graphs_in(node).empty() || std::ranges::any_of(node.outputs, is_unknown);
  });
}

void add_forward(const OnnxModel& model, const std::vector<std::optional<graph::TensorId>>& tensor_of,
                 const OnnxModel& inferred, const OnnxStandIns& stand_ins, const OpenPictures& pictures,
                 graph::MetaGraph& graph) {
  if (!model.graph || model[*model.graph].nodes.empty()) return;
  ForwardBuilder builder(model, tensor_of, inferred, stand_ins, pictures);
  graph::ForwardGraph forward = builder.build();
  if (!builder.unusable().empty()) {
    graph.note(graph::Severity::warning, {}, "{}{}", graph::kOperatorsLeftOut, builder.unusable());
    return;
  }
  std::string guessed;
  for (const graph::NamedSize& size : forward.sizes)
    if (size.guessed)
      guessed += fmt::format("{}'{}' as {}", guessed.empty() ? "" : ", ", safe_display(size.name, 60),
                             size.taken_as.text(forward.symbols));
  if (!guessed.empty())
    graph.note(graph::Severity::info, {}, "sizes that the file leaves open, by where they stand: {}",
               guessed);
  graph.forward = std::move(forward);
  const std::vector<graph::Value>& values = graph.forward->values;
  const auto left = builder.inside_functions();
  const auto unknown =
      static_cast<std::size_t>(std::ranges::count_if(values, [](const graph::Value& v) { return !v.shape; }));
  if (unknown > left.without_shape)
    graph.note(graph::Severity::info, {}, "the shapes of {} of {} values are unknown{}{}",
               unknown - left.without_shape, values.size() - left.values,
               graph.forward->unaccounted.empty() ? "" : "; shape inference does not know ",
               join_names(graph.forward->unaccounted, 5));
}

}  // namespace loadline::importers
