// The facts about an open model, and what forbids to use it.
#pragma once

#include "core/base/tasks.h"
#include "core/forward/model/assets_loader.h"
#include "core/gpu/device_info.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/io/file_system.h"
#include "core/load/answer/projection.h"
#include "core/plan/timeline.h"
#include "core/view/layouts.h"
#include "exporters/convert.h"
#include "importers/importer.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The facts about an opened model that panels show, computed once, in a job.

struct DTypeShare {
  graph::DType dtype = graph::DType::opaque;
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;  // bytes that several tensors view count once
};

// The positions of tensors in the natural order of their names. They are worked out when they are first asked
// for, from any thread: of a million names that takes a second.
class NameRanks {
 public:
  const std::vector<std::uint32_t>& of(const graph::MetaGraph& graph) const;

 private:
  mutable Once once_;
  mutable std::vector<std::uint32_t> ranks_;
};

// Immutable once made; vectors named "per tensor" are parallel to graph->tensors.
struct Model {
  graph::MetaGraphPtr graph;
  std::string path;  // as given by the user; empty for a graph without a path
  std::string name;
  graph::ModuleTree tree;
  view::TreemapOrder treemap_order;
  std::vector<graph::NodeId> nodes;       // per tensor: its place in the tree
  std::vector<std::uint64_t> bytes;       // per tensor
  std::vector<graph::Role> roles;         // per tensor
  std::vector<graph::Role> module_roles;  // per node of the tree
  std::vector<std::int32_t> layers;       // per tensor; -1 outside numbered layers
  std::int32_t layer_count = 0;
  std::vector<std::vector<graph::TensorId>> ties;
  std::vector<std::uint32_t> tie_of;                   // per tensor: 1 + index in ties, 0 = not tied
  std::vector<std::optional<graph::TensorId>> owners;  // per storage
  std::uint64_t weight_bytes = 0;                      // bytes of all storages
  std::uint64_t disk_bytes = 0;
  std::vector<DTypeShare> dtypes;  // by decreasing bytes
  std::array<std::uint64_t, graph::kRoleCount> role_bytes = {};
  std::vector<std::uint64_t> bytes_of_file;         // tensor bytes per file
  std::vector<graph::EncodingShare> encodings;      // all but plain
  std::string mapping_refusal;                      // why the files cannot be mapped; empty if they can
  bool remarks = false;                             // storage_remark() is not empty for some tensor
  bool shapes_only = false;                         // no file holds (all of) its weights
  bool follow_links = false;                        // it was opened so
  std::vector<importers::NamedSide> picture_sides;  // that were chosen when it was opened
  std::size_t errors = 0;                           // number of notes of severity error
  NameRanks name_ranks;

  const graph::Tensor& tensor(graph::TensorId id) const { return graph->tensor(id); }
};
using ModelPtr = std::shared_ptr<const Model>;

// Computes the facts. An empty name stands for the name that the graph has.
ModelPtr make_model(graph::MetaGraphPtr graph, std::string path, std::string name = {},
                    bool follow_links = false, std::vector<importers::NamedSide> picture_sides = {});

enum class SortColumn { name, dtype, shape, bytes, file, offset };
inline constexpr std::array<std::string_view, 6> kSortColumnNames = {"name",  "dtype", "shape",
                                                                     "bytes", "file",  "offset"};

// The first tensor of that name.
std::optional<graph::TensorId> find_tensor(const Model& model, std::string_view name);

// The module of tensors with that path.
std::optional<graph::NodeId> find_module(const Model& model, std::string_view path);

// A remark on unusual storage of a tensor: "view", "deflate", "tied"; else empty.
std::string storage_remark(const Model& model, graph::TensorId id);

// The tensors that pass the filter (core/graph/names/tensor_names.h). Throws Error{usage}.
std::vector<graph::TensorId> filtered(const Model& model, std::string_view filter);
// Per node of the tree: whether it, or anything below it, is among `tensors`.
std::vector<bool> nodes_with(const Model& model, std::span<const graph::TensorId> tensors);
// Per node of the tree: those of `tensors` at and below it. Bytes that several of them view count once.
struct NodeTotals {
  std::uint64_t bytes = 0;
  std::uint64_t tensors = 0;
};
std::vector<NodeTotals> totals_of(const Model& model, std::span<const graph::TensorId> tensors);
// Sorts `rows` by a column; equal rows are in the order of names.
void sort_tensors(const Model& model, std::span<graph::TensorId> rows, SortColumn column, bool ascending);

// --- Checks before an upload or a conversion: does the model fit on the device, and how large is the new
// file?

// Why the uploader would refuse, in the uploader's words; empty if the device can take the upload. Uses the
// device's free memory when it was listed. `system` is the available memory of the machine, if known.
std::string upload_misfit(const load::Projection& projection, const graph::MetaGraph& graph,
                          const gpu::DeviceInfo& device, std::optional<std::uint64_t> system);

// Why this load cannot map the model's files; empty if it maps no files, or if all weights have plain
// encoding.
std::string mapping_misfit(const Model& model, const load::Projection& projection);
// Why the weights cannot all be read, so that neither load nor conversion is possible; empty if they can.
std::string reading_misfit(const Model& model);
// Why the model can only be inspected, and its weights not be used; empty if they can.
std::string use_misfit(const Model& model);

}  // namespace loadline::gui
