// One pass a fact; reasons against an upload or a conversion.
#include "app/gui/state/model/model.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/gpu/memory_need.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "core/graph/names/tensor_names.h"
#include "core/load/answer/projection.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace loadline::gui {

// --- Derives the facts that panels show from a graph: one pass for each fact, no work per frame.

namespace {

std::vector<std::uint32_t> ranks_of_names(const graph::MetaGraph& graph) {
  std::vector<std::uint32_t> order(graph.tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return natural_less(graph.tensors[a].name, graph.tensors[b].name);
  });
  std::vector<std::uint32_t> rank(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  return rank;
}

void add_tensors(Model& model) {
  const graph::MetaGraph& graph = *model.graph;
  model.roles = graph::tensor_roles(graph);
  const std::vector<graph::Share> parts = graph::shares(graph);
  std::map<graph::DType, DTypeShare> dtypes;
  model.bytes_of_file.resize(graph.files.size());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const graph::Tensor& tensor = graph.tensors[i];
    model.bytes.push_back(graph::tensor_bytes(graph, tensor));
    const auto layer = graph::layer_number(tensor.name);
    model.layers.push_back(layer && *layer < 1'000'000 ? static_cast<std::int32_t>(*layer) : -1);
    model.layer_count = std::max(model.layer_count, model.layers.back() + 1);
    DTypeShare& share = dtypes[tensor.dtype];
    share.dtype = tensor.dtype;
    ++share.tensors;
    share.bytes += parts[i].bytes;
    model.role_bytes[static_cast<std::size_t>(model.roles[i])] += parts[i].bytes;
    const graph::FileId file = graph.storage(tensor.storage).file;
    if (file != graph::kNoFile) model.bytes_of_file[graph::index(file)] += parts[i].bytes;
  }
  for (const auto& [dtype, share] : dtypes) model.dtypes.push_back(share);
  std::ranges::stable_sort(model.dtypes,
                           [](const DTypeShare& a, const DTypeShare& b) { return a.bytes > b.bytes; });
}

void add_tree(Model& model) {
  const graph::MetaGraph& graph = *model.graph;
  model.tree = graph::module_tree(graph);
  model.treemap_order = view::TreemapOrder(model.tree);
  model.nodes.resize(graph.tensors.size(), graph::kRootNode);
  for (std::uint32_t i = 0; i < model.tree.nodes.size(); ++i)
    if (const auto tensor = model.tree.nodes[i].tensor) model.nodes[graph::index(*tensor)] = graph::NodeId{i};
}

// All but the tree.
void add_facts(Model& model) {
  const graph::MetaGraph& graph = *model.graph;
  model.owners = graph::first_owner(graph);
  model.ties = graph::tied_groups(graph);
  model.tie_of.resize(graph.tensors.size());
  for (std::uint32_t group = 0; group < model.ties.size(); ++group)
    for (const graph::TensorId id : model.ties[group]) model.tie_of[graph::index(id)] = group + 1;
  add_tensors(model);
  model.encodings = graph::encoding_shares(graph);
  model.mapping_refusal = load::mapping_refusal(graph);
  for (std::uint32_t i = 0; i < graph.tensors.size() && !model.remarks; ++i)
    model.remarks = !storage_remark(model, graph::TensorId{i}).empty();
  model.weight_bytes = graph::storage_bytes(graph);
  model.disk_bytes = graph::file_bytes(graph);
  model.shapes_only = graph::shapes_only(graph);
  for (const graph::Note& note : graph.notes) model.errors += note.severity == graph::Severity::error;
}

}  // namespace

const std::vector<std::uint32_t>& NameRanks::of(const graph::MetaGraph& graph) const {
  once_.run([&] { ranks_ = ranks_of_names(graph); });
  return ranks_;
}

ModelPtr make_model(graph::MetaGraphPtr graph, std::string path, std::string name, bool follow_links,
                    std::vector<importers::NamedSide> picture_sides) {
  auto model = std::make_shared<Model>();
  model->graph = std::move(graph);
  model->path = std::move(path);
  model->follow_links = follow_links;
  model->picture_sides = std::move(picture_sides);
  const graph::MetaGraph& g = *model->graph;
  model->name = name.empty() ? graph::model_name(g) : std::move(name);
  // the two halves take about as long as each other
  constexpr std::array<void (*)(Model&), 2> kHalves = {add_tree, add_facts};
  ParallelLoop(kHalves.size(), kHalves.size(), [&](std::size_t i) { kHalves[i](*model); }).finish();
  model->module_roles = graph::module_roles(g, model->tree, model->roles);
  return model;
}

std::optional<graph::TensorId> find_tensor(const Model& model, std::string_view name) {
  const auto& tensors = model.graph->tensors;
  const auto found = std::ranges::find_if(tensors, [&](const graph::Tensor& t) { return t.name == name; });
  if (found == tensors.end()) return std::nullopt;
  return graph::TensorId{static_cast<std::uint32_t>(found - tensors.begin())};
}

std::optional<graph::NodeId> find_module(const Model& model, std::string_view path) {
  for (std::uint32_t i = 0; i < model.tree.nodes.size(); ++i)
    if (graph::module_path(model.tree, graph::NodeId{i}) == path && !model.tree.nodes[i].children.empty())
      return graph::NodeId{i};
  return std::nullopt;
}

std::string storage_remark(const Model& model, graph::TensorId id) {
  const graph::Tensor& tensor = model.tensor(id);
  const graph::Storage& storage = model.graph->storage(tensor.storage);
  std::string remark;
  const auto add = [&](std::string_view word) {
    if (!remark.empty()) remark += ", ";
    remark += word;
  };
  if (storage.encoding != graph::Encoding::plain) add(graph::encoding_name(storage.encoding));
  if (!tensor.strides.empty()) add("view");
  if (model.tie_of[graph::index(id)] > 0)
    add("tied");
  else if (tensor.strides.empty() && model.bytes[graph::index(id)] < storage.bytes)
    add("part");
  return remark;
}

std::vector<graph::TensorId> filtered(const Model& model, std::string_view filter) {
  return graph::TensorFilter(filter).select(*model.graph);
}

std::vector<bool> nodes_with(const Model& model, std::span<const graph::TensorId> tensors) {
  std::vector<bool> with(model.tree.nodes.size(), false);
  for (const graph::TensorId id : tensors) {
    graph::NodeId at = model.nodes[graph::index(id)];
    for (; at != graph::kRootNode && !with[graph::index(at)]; at = model.tree.node(at).parent)
      with[graph::index(at)] = true;
    with[graph::index(graph::kRootNode)] = true;
  }
  return with;
}

std::vector<NodeTotals> totals_of(const Model& model, std::span<const graph::TensorId> tensors) {
  std::vector<NodeTotals> totals(model.tree.nodes.size());
  const std::vector<graph::Share> shares = graph::shares(*model.graph, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    NodeTotals& own = totals[graph::index(model.nodes[graph::index(tensors[i])])];
    own.bytes += shares[i].bytes;
    ++own.tensors;
  }
  // a node comes before its children
  for (std::size_t i = totals.size(); i-- > 1;) {
    NodeTotals& parent = totals[graph::index(model.tree.nodes[i].parent)];
    parent.bytes += totals[i].bytes;
    parent.tensors += totals[i].tensors;
  }
  return totals;
}

void sort_tensors(const Model& model, std::span<graph::TensorId> rows, SortColumn column, bool ascending) {
  const graph::MetaGraph& graph = *model.graph;
  const auto key_less = [&](graph::TensorId a, graph::TensorId b) {
    const graph::Tensor& ta = graph.tensor(a);
    const graph::Tensor& tb = graph.tensor(b);
    switch (column) {
      case SortColumn::name:
        return false;
      case SortColumn::dtype:
        return ta.dtype < tb.dtype;
      case SortColumn::shape:
        return ta.shape < tb.shape;
      case SortColumn::bytes:
        return model.bytes[graph::index(a)] < model.bytes[graph::index(b)];
      case SortColumn::file:
        return graph.storage(ta.storage).file < graph.storage(tb.storage).file;
      case SortColumn::offset: {
        const graph::Storage& sa = graph.storage(ta.storage);
        const graph::Storage& sb = graph.storage(tb.storage);
        if (sa.file != sb.file) return sa.file < sb.file;
        return sa.offset + ta.offset < sb.offset + tb.offset;
      }
    }
    return false;
  };
  const auto less = [&](graph::TensorId a, graph::TensorId b) {
    if (key_less(a, b)) return ascending;
    if (key_less(b, a)) return !ascending;
    if (a == b) return false;
    const std::vector<std::uint32_t>& ranks = model.name_ranks.of(graph);
    const bool before = ranks[graph::index(a)] < ranks[graph::index(b)];
    return column == SortColumn::name && !ascending ? !before : before;
  };
  // files list their tensors by offset
  if (!std::ranges::is_sorted(rows, less)) std::ranges::sort(rows, less);
}

// --- Compares peaks with device memory, encodings with the method's needs, and computes converted sizes.

namespace {

gpu::MemorySupply supply_of(const gpu::DeviceInfo& device, std::optional<std::uint64_t> system) {
  const auto room = [](const gpu::DeviceHeap& heap) { return heap.budget.value_or(heap.bytes); };
  gpu::MemorySupply supply;
  supply.system = system;
  supply.shares_system = device.unified;
  supply.is_system = device.type == gpu::DeviceType::cpu;
  supply.set_aside = device.set_aside;
  const gpu::DeviceHeap* local = gpu::device_heap(device);
  if (local != nullptr) supply.device = room(*local);
  if (supply.is_system && local != nullptr && local->budget) supply.system = local->budget;
  supply.same_heap = true;
  for (const gpu::DeviceHeap& heap : device.heaps) {
    if (&heap == local || !heap.host_visible || heap.device_local) continue;
    supply.same_heap = false;
    supply.staging = std::max(supply.staging, room(heap));
  }
  return supply;
}

}  // namespace

std::string upload_misfit(const load::Projection& projection, const graph::MetaGraph& graph,
                          const gpu::DeviceInfo& device, std::optional<std::uint64_t> system) {
  try {
    if (gpu::packs_weights(projection.plan)) gpu::require_packing(device);
    gpu::require_fit(gpu::needs_of(projection.timeline), supply_of(device, system), device.name);
    gpu::require_pieces(projection.plan, graph, device, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string mapping_misfit(const Model& model, const load::Projection& projection) {
  return projection.maps_files ? model.mapping_refusal : "";
}

std::string reading_misfit(const Model& model) {
  for (const graph::EncodingShare& share : model.encodings)
    if (share.encoding == graph::Encoding::unreadable)
      return fmt::format("{} of {} storages cannot be read: quantized blocks in big-endian order",
                         format_grouped(share.storages), format_grouped(model.graph->storages.size()));
  return "";
}

std::string use_misfit(const Model& model) {
  if (model.errors > 0) {
    const auto& notes = model.graph->notes;
    const auto first = std::ranges::find(notes, graph::Severity::error, &graph::Note::severity);
    return first->text + (model.errors > 1 ? fmt::format(" (and {} more errors)", model.errors - 1) : "");
  }
  if (model.shapes_only) return "it has shapes only: no file holds its weights";
  return reading_misfit(model);
}

}  // namespace loadline::gui
