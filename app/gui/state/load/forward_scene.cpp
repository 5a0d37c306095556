// Derives from the operators, in one pass, everything that does not depend on sizes.
#include "app/gui/state/load/forward_scene.h"

#include "core/base/error.h"
#include "core/forward/family/architecture.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/lifetimes.h"
#include "core/forward/pass/lowering.h"
#include "core/view/operator_graph.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {
namespace {

void add_weights(ForwardScene& scene) {
  const graph::ForwardGraph& forward = *scene.model.graph;
  constexpr std::uint32_t kUnused = UINT32_MAX;
  std::vector<forward::OpRange> uses(scene.graph->tensors.size(), {kUnused, 0});
  for (std::uint32_t i = 0; i < forward.ops.size(); ++i)
    for (const graph::TensorId id : forward.ops[i].weights) {
      forward::OpRange& range = uses[graph::index(id)];
      range = {std::min(range.first, i), i + 1};
    }
  for (std::uint32_t i = 0; i < uses.size(); ++i)
    if (!uses[i].empty()) scene.weights.push_back({graph::TensorId{i}, uses[i]});
  std::ranges::stable_sort(scene.weights, {}, [](const auto& use) { return use.ops.first; });
}

void add_values(ForwardScene& scene) {
  const graph::ForwardGraph& forward = *scene.model.graph;
  const auto& lives = scene.model.lives;
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    if (lives[i].empty()) continue;
    (forward.values[i].lane == graph::Lane::temporary ? scene.temporaries : scene.activations)
        .push_back(graph::ValueId{i});
  }
  const auto begins = [&](graph::ValueId id) { return lives[static_cast<std::size_t>(id)].first; };
  for (auto* list : {&scene.activations, &scene.temporaries})
    std::ranges::stable_sort(*list,
                             [&](graph::ValueId a, graph::ValueId b) { return begins(a) < begins(b); });
  std::vector<bool> written(forward.values.size(), false);
  const auto end = static_cast<std::uint32_t>(forward.ops.size());
  for (std::uint32_t i = 0; i < end; ++i)
    for (const graph::ValueId id : forward.ops[i].outputs) {
      const graph::Value& value = forward.value(id);
      if (value.lane != graph::Lane::cache || value.memory_of || written[static_cast<std::size_t>(id)])
        continue;
      written[static_cast<std::size_t>(id)] = true;
      scene.cache.emplace_back(id, forward::OpRange{i, end});
    }
}

// Whether any dimension depends on the symbol at some size; a window, once full, no longer does.
bool depends_on(const graph::ForwardGraph& forward, std::size_t symbol) {
  std::vector<graph::SymbolId> follow = {
      graph::SymbolId{static_cast<std::uint16_t>(symbol)}};  // symbols that depend on it
  const auto mentions = [&](const graph::SizePoly& side) {
    return std::ranges::any_of(follow, [&](graph::SymbolId id) { return side.mentions(id); });
  };
  for (const graph::ChosenSize& one : forward.chosen)
    if (mentions(one.size) || mentions(one.then) || mentions(one.otherwise)) follow.push_back(one.symbol);
  return std::ranges::any_of(forward.values, [&](const graph::Value& value) {
    return value.shape && std::ranges::any_of(*value.shape, mentions);
  });
}

void add_symbols(ForwardScene& scene) {
  const graph::ForwardGraph& forward = *scene.model.graph;
  // a file may name any number of sizes; its inputs name the first ones. Chosen sizes are behind them and
  // follow from them
  constexpr std::size_t kMostTried = 16;
  const std::size_t named = forward.symbols.size() - std::min(forward.symbols.size(), forward.chosen.size());
  scene.symbols_matter.assign(forward.symbols.size(), false);
  for (std::size_t i = 0; i < std::min(named, kMostTried); ++i)
    scene.symbols_matter[i] = depends_on(forward, i);
}

bool chooses_rows(const forward::BoundOp& op) {
  return op.line->op == "linear" && std::ranges::any_of(op.attributes, [](const auto& attribute) {
           return attribute.first == "rows" && attribute.second == assets::Datum(std::string("last"));
         });
}

// The range of a node's operators, if no other operator lies between them.
std::optional<forward::OpRange> contiguous(const graph::OpTree& tree, graph::OpNodeId id) {
  forward::OpRange range = {UINT32_MAX, 0};
  std::size_t count = 0;
  std::vector<graph::OpNodeId> below = {id};
  while (!below.empty()) {
    const graph::OpNode& node = tree.node(below.back());
    below.pop_back();
    count += node.ops.size();
    for (const std::uint32_t op : node.ops) range = {std::min(range.first, op), std::max(range.end, op + 1)};
    below.insert(below.end(), node.children.begin(), node.children.end());
  }
  if (range.empty() || range.end - range.first != count) return std::nullopt;
  return range;
}

// The name of a stack: "encoder" for encoder.layers, and for encoder itself.
std::string stack_name(const graph::OpTree& tree, graph::OpNodeId parent) {
  const graph::OpNode& above = tree.node(tree.node(parent).parent);
  return above.name.empty() ? tree.node(parent).name : above.name;
}

// The repeated modules nearest the root, wherever they are.
void add_bands(ForwardScene& scene) {
  std::vector<std::pair<ForwardScene::Band, graph::OpNodeId>> bands;  // each with its parent node
  std::vector<graph::OpNodeId> look = {graph::kRootOpNode};
  while (!look.empty()) {
    const graph::OpNodeId at = look.back();
    look.pop_back();
    const std::vector<graph::OpGroup> groups = graph::folded_children(scene.tree, at);
    const bool repeats =
        std::ranges::any_of(groups, [](const graph::OpGroup& group) { return group.members.size() > 1; });
    for (const graph::OpGroup& group : groups)
      for (const graph::OpNodeId member : group.members) {
        const std::string& name = scene.tree.node(member).name;
        const std::size_t digits = name.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
        if (!repeats || digits == name.size() || scene.tree.node(member).all_ops < 2) {
          look.push_back(member);
        } else if (const auto range = contiguous(scene.tree, member)) {
          bands.push_back({{name.substr(digits), "", *range}, at});
        }
      }
  }
  std::ranges::sort(bands, {}, [](const auto& band) { return band.first.ops.first; });
  const bool several =
      std::ranges::any_of(bands, [&](const auto& band) { return band.second != bands.front().second; });
  for (std::size_t i = 0; i < bands.size(); ++i) {
    auto& [band, parent] = bands[i];
    if (i == 0 || parent != bands[i - 1].second)
      band.stack = several ? stack_name(scene.tree, parent) : "layer";
    scene.bands.push_back(std::move(band));
  }
}

void add_file(ForwardScene& scene, const forward::Profile& profile) {
  const graph::ForwardGraph& file = *scene.graph->forward;
  if (forward::runs(profile, *scene.graph)) {
    forward::FilePass pass = forward::file_pass(file, profile, scene.graph->tensors);
    scene.file_ops = std::move(pass.ops);
    scene.file_values = std::move(pass.values);
  } else {
    for (std::uint32_t i = 0; i < file.ops.size(); ++i) scene.file_ops.push_back({graph::OpPlace::kMain, i});
    for (std::uint32_t i = 0; i < file.values.size(); ++i) scene.file_values.emplace_back(graph::ValueId{i});
  }
  scene.file_tree = graph::op_tree(*scene.graph, file);
  scene.holders = view::holders_of_bodies(file);
  scene.bodies_run = graph::bodies_that_run(file);
  for (const graph::Body& body : file.bodies) scene.runs_as.emplace_back(body.ops.size());
  scene.runs_as.emplace_back(file.ops.size());
  const auto note_constants = [&](const std::vector<graph::Op>& ops) {
    for (const graph::Op& op : ops)
      if ((op.kind == "Constant" || op.kind == "Identity") && op.inputs.empty() && op.outputs.size() == 1 &&
          op.weights.size() == 1)
        scene.constants[op.outputs.front()] = op.weights.front();
  };
  note_constants(file.ops);
  for (const graph::Body& body : file.bodies) note_constants(body.ops);
  for (std::uint32_t i = 0; i < scene.file_ops.size(); ++i) {
    const graph::OpPlace place = scene.file_ops[i];
    scene.runs_as[std::min<std::size_t>(place.body, file.bodies.size())][place.at] = i;
  }
}

}  // namespace

graph::OpPlace ForwardScene::place_of(std::size_t op) const {
  return file_tree ? file_ops[op] : graph::OpPlace{graph::OpPlace::kMain, static_cast<std::uint32_t>(op)};
}

std::optional<std::size_t> ForwardScene::op_at(graph::OpPlace place) const {
  if (!file_tree) return place.at;
  return runs_as[std::min<std::size_t>(place.body, runs_as.size() - 1)][place.at];
}

std::string_view ForwardScene::why_not_run(graph::OpPlace place) const {
  return place.body < bodies_run.size() && !bodies_run[place.body]
             ? "It is a part of a function, which the pass runs as one operator."
             : "It does not run in the pass: its result is known before.";
}

std::optional<graph::ValueId> ForwardScene::in_pass(graph::ValueId drawn_value) const {
  return file_tree ? file_values[static_cast<std::size_t>(drawn_value)] : std::optional(drawn_value);
}

std::shared_ptr<const ForwardScene> make_forward_scene(graph::MetaGraphPtr graph,
                                                       std::shared_ptr<const forward::ForwardAssets> assets,
                                                       const forward::ForwardOptions& options,
                                                       Progress& progress) {
  auto scene = std::make_shared<ForwardScene>();
  scene->graph = std::move(graph);
  scene->assets = std::move(assets);
  const auto model = [&](const forward::ForwardOptions& chosen) {
    scene->model = forward::forward_model(*scene->graph, *scene->assets,
                                          forward::chosen_profile(*scene->assets, *scene->graph, chosen));
  };
  forward::ForwardOptions fitting = options;  // options chosen for another model may not fit this one
  try {
    if (!fitting.profile.empty() && !forward::runs(scene->assets->profile(fitting.profile), *scene->graph))
      fitting.profile.clear();
    model(fitting);
  } catch (const Error& error) {
    if (fitting == forward::ForwardOptions()) throw;
    scene->fault = error.what();
    fitting = {};
    model(fitting);
  }
  // a file's operators have types and shapes of their own
  if (scene->model.source == forward::ForwardSource::file) fitting = {.profile = fitting.profile};
  scene->options = std::move(fitting);
  progress.check_canceled();
  if (scene->forward() == nullptr) {
    scene->tree.nodes.emplace_back();
    return scene;
  }
  scene->tree = graph::op_tree(*scene->graph, *scene->model.graph);
  progress.check_canceled();
  if (scene->model.source == forward::ForwardSource::file)
    add_file(*scene, forward::chosen_profile(*scene->assets, *scene->graph, scene->options));
  progress.check_canceled();
  add_weights(*scene);
  add_values(*scene);
  add_symbols(*scene);
  add_bands(*scene);
  if (scene->model.bound) scene->has_logits = std::ranges::any_of(scene->model.bound->ops, chooses_rows);
  return scene;
}

std::vector<std::uint64_t> symbols_of(const graph::ForwardGraph& graph, const load::LoadRequest& request) {
  return forward::symbol_values(graph, request.batch, std::max<std::uint64_t>(request.sequence, 1),
                                request.past, request.sizes);
}

std::vector<std::uint64_t> peaks_inside(const graph::OpTree& tree,
                                        const std::vector<forward::LaneBytes>& usage) {
  std::vector<std::uint64_t> peaks(tree.nodes.size(), 0);
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    for (const std::uint32_t op : tree.nodes[i].ops) peaks[i] = std::max(peaks[i], usage[op].passing());
    if (i == 0) break;
    std::uint64_t& above = peaks[static_cast<std::size_t>(tree.nodes[i].parent)];
    above = std::max(above, peaks[i]);
  }
  return peaks;
}

}  // namespace loadline::gui
