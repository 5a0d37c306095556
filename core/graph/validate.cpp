// Checks ids, ranges, names and sums.
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include <fmt/core.h>

namespace loadline::graph {
namespace {

template <typename... Values>
[[noreturn]] void fail(const MetaGraph& graph, const Tensor& tensor, fmt::format_string<Values...> detail,
                       const Values&... values) {
  const bool known = index(tensor.storage) < graph.storages.size();
  const FileId file = known ? graph.storage(tensor.storage).file : kNoFile;
  throw Error(
      ErrorCode::malformed,
      {.file = index(file) < graph.files.size() ? graph.files[index(file)].path : "", .tensor = tensor.name},
      detail, values...);
}

void check_tensor(const MetaGraph& graph, const Tensor& tensor) {
  if (index(tensor.storage) >= graph.storages.size())
    fail(graph, tensor, "storage {} does not exist, there are {}", index(tensor.storage),
         graph.storages.size());
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size())
    fail(graph, tensor, "{} strides for rank {}", tensor.strides.size(), tensor.shape.size());
  const Storage& storage = graph.storage(tensor.storage);
  const DTypeInfo& type = dtype_info(tensor.dtype);
  if (type.block_elements == 0) {
    if (tensor.offset > storage.bytes)
      fail(graph, tensor, "starts at byte {} of a {} byte storage", tensor.offset, storage.bytes);
    return;
  }
  // without calls for the usual tensors: a processor waits for an optional that a call returns
  const auto elements = tensor.strides.empty() ? element_count(tensor.shape) : spanned_elements(tensor);
  std::optional<std::uint64_t> bytes;
  if (elements)
    bytes = type.block_elements == 1 ? checked_mul(*elements, type.block_bytes)
                                     : packed_byte_size(tensor.dtype, *elements);
  if (!bytes && elements && *elements % type.block_elements != 0)
    fail(graph, tensor, "its {} elements do not fill whole blocks of {}", *elements, type.block_elements);
  if (!bytes) fail(graph, tensor, "its size overflows 64 bits");
  if (!range_fits(tensor.offset, *bytes, storage.bytes))
    fail(graph, tensor, "needs {} bytes at {}, its storage has {}", *bytes, tensor.offset, storage.bytes);
}

// Names are checked before ranges: a file with repeated names is not trusted further. A table of all names
// does not fit in a core's caches. A bit for each hash does, and few names share theirs with others: those
// are looked at.
void check_names(const MetaGraph& graph) {
  constexpr std::size_t kBitsForName = 8;
  const std::size_t mask = std::bit_ceil(kBitsForName * graph.tensors.size() + 1) - 1;
  std::vector<bool> taken(mask + 1), shared(mask + 1);
  for (const Tensor& tensor : graph.tensors) {
    const std::size_t bit = tensor.name.hash() & mask;
    if (taken[bit]) shared[bit] = true;
    taken[bit] = true;
  }
  NameIndex names;
  const auto text_of = [&](std::uint32_t i) { return graph.tensors[i].name.view(); };
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (!shared[tensor.name.hash() & mask] || !names.add(tensor.name, tensor.name.hash(), i, text_of))
      continue;
    if (graph.format == "torch" || graph.format == "torch_legacy")
      fail(graph, tensor, "nested keys of the checkpoint, joined with dots, give two tensors this name");
    fail(graph, tensor, "the name occurs twice");
  }
}

void check_ranges(const MetaGraph& graph, std::size_t part, std::size_t parts) {
  const std::size_t end = graph.tensors.size() * (part + 1) / parts;
  for (std::size_t i = graph.tensors.size() * part / parts; i < end; ++i)
    check_tensor(graph, graph.tensors[i]);
}

// Checks that every id exists, and that every value is made at most once and before it is used.
class ForwardCheck {
 public:
  ForwardCheck(const MetaGraph& graph, const ForwardGraph& forward)
      : graph_(graph), forward_(forward), made_(forward.values.size()), entered_(forward.bodies.size()) {}

  void check() {
    for (std::size_t i = 0; i < forward_.values.size(); ++i)
      if (forward_.values[i].memory_of && index(*forward_.values[i].memory_of) >= i)
        throw Error(ErrorCode::malformed, "a value shares the memory of a later one");
    for (const ValueId id : forward_.inputs) {
      if (index(id) >= made_.size()) throw Error(ErrorCode::malformed, "an input value does not exist");
      made_[index(id)] = true;
    }
    for (const Op& op : forward_.ops) check_op(op, 0);
    for (const ValueId id : forward_.outputs)
      if (!is_made(id)) throw Error(ErrorCode::malformed, "an output value is never produced");
  }

 private:
  [[noreturn]] static void fail(const Op& op, std::string_view detail) {
    throw Error(ErrorCode::malformed, "operator {} '{}' {}", safe_display(op.kind, 60),
                safe_display(op.name, 100), detail);
  }
  bool is_made(ValueId id) const { return index(id) < made_.size() && made_[index(id)]; }
  void make(const Op& op, ValueId id) {
    if (index(id) >= made_.size()) fail(op, "makes a value that does not exist");
    if (made_[index(id)]) fail(op, "produces a value that was already produced");
    made_[index(id)] = true;
  }

  void check_op(const Op& op, std::size_t depth) {
    for (const ValueId id : op.inputs)
      if (!is_made(id)) fail(op, "uses a value before it is produced");
    for (const TensorId id : op.weights)
      if (index(id) >= graph_.tensors.size()) fail(op, "uses a tensor that does not exist");
    for (const std::uint32_t body : op.bodies) {
      if (body >= entered_.size()) fail(op, "names a subgraph that does not exist");
      if (entered_[body]) fail(op, "names a subgraph that belongs to another operator");
      if (depth == kMostBodyDepth) fail(op, "names a subgraph that is nested too deep");
      entered_[body] = true;
      check_body(op, forward_.bodies[body], depth + 1);
    }
    for (const ValueId id : op.temporaries) make(op, id);  // a later operator may hold it
    for (const ValueId id : op.outputs) make(op, id);
    for (const ValueId id : op.held)
      if (!is_made(id)) fail(op, "holds a value before it is made");
  }

  void check_body(const Op& of, const Body& body, std::size_t depth) {
    for (const ValueId id : body.inputs) make(of, id);
    for (const Op& op : body.ops) check_op(op, depth);
    for (const ValueId id : body.outputs)
      if (!is_made(id)) fail(of, "has a graph whose output is never made");
  }

  const MetaGraph& graph_;
  const ForwardGraph& forward_;
  std::vector<bool> made_;
  std::vector<bool> entered_;  // by body
};

void check_encoding(const ModelFile& file, const Storage& storage, std::size_t number) {
  const bool same_size = storage.encoding == Encoding::plain || storage.encoding == Encoding::byte_swapped;
  const bool whole_units = storage.unit > 0 && storage.unit <= 8 && storage.bytes % storage.unit == 0;
  if ((same_size && storage.stored_bytes != storage.bytes) || !whole_units)
    throw Error(ErrorCode::malformed, {.file = file.path, .byte = storage.offset},
                "storage {}: {} bytes stored as {} do not make {} bytes in units of {}", number,
                storage.stored_bytes, encoding_name(storage.encoding), storage.bytes, storage.unit);
}

void check_storages(const MetaGraph& graph) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    const auto total = checked_add(sum, storage.bytes);
    if (!total || *total >= kMost)
      throw Error(ErrorCode::malformed, "storage {}: sizes add up to more than 2^63 bytes", i);
    sum = *total;
    if (storage.file == kNoFile) continue;
    if (index(storage.file) >= graph.files.size())
      throw Error(ErrorCode::malformed, "storage {}: file {} does not exist", i, index(storage.file));
    const ModelFile& file = graph.files[index(storage.file)];
    if (!range_fits(storage.offset, storage.stored_bytes, file.bytes))
      throw Error(ErrorCode::malformed, {.file = file.path, .byte = storage.offset},
                  "storage {} has {} bytes, the file ends at {}", i, storage.stored_bytes, file.bytes);
    check_encoding(file, storage, i);
  }
}

// Whether storages, names and ranges are valid, checked by several threads.
bool is_sound(const MetaGraph& graph) {
  constexpr std::size_t kMostThreads = 8;
  const std::size_t threads = std::clamp<std::size_t>(cores(), 2, kMostThreads);
  std::atomic<bool> sound = true;
  ParallelLoop(threads + 2, threads, [&](std::size_t turn) {
    try {
      if (turn == 0)
        check_names(graph);
      else if (turn == 1)
        check_storages(graph);
      else
        check_ranges(graph, turn - 2, threads);
    } catch (...) {
      sound = false;
    }
  }).finish();
  return sound;
}

}  // namespace

std::optional<std::uint64_t> spanned_elements(const Tensor& tensor) {
  const auto count = element_count(tensor.shape);
  if (!count || *count == 0 || tensor.strides.empty()) return count;
  std::uint64_t span = 1;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto step = checked_mul(tensor.shape[i] - 1, tensor.strides[i]);
    const auto sum = step ? checked_add(span, *step) : std::nullopt;
    if (!sum) return std::nullopt;
    span = *sum;
  }
  return span;
}

std::optional<std::uint64_t> spanned_bytes(const Tensor& tensor) {
  const auto span = spanned_elements(tensor);
  return span ? packed_byte_size(tensor.dtype, *span) : std::nullopt;
}

bool is_contiguous(const Tensor& tensor) {
  if (tensor.strides.empty()) return true;
  std::uint64_t expected = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

namespace {

// Each tensor is a part of at most one weight.
void check_packed(const MetaGraph& graph) {
  std::vector<bool> used(graph.tensors.size(), false);
  const auto use = [&](const LogicalTensor& weight, TensorId id) {
    if (index(id) >= used.size())
      throw Error(ErrorCode::malformed, {.tensor = weight.name}, "has a part that does not exist");
    if (used[index(id)])
      throw Error(ErrorCode::malformed, {.tensor = weight.name}, "has a part that belongs to another weight");
    used[index(id)] = true;
  };
  for (const LogicalTensor& weight : graph.logical) {
    use(weight, weight.codes);
    for (const CompanionTensor& companion : weight.companions) use(weight, companion.tensor);
  }
}

}  // namespace

void validate(const MetaGraph& graph) {
  constexpr std::size_t kWorthThreads = 10'000;
  // which of two faults is reported must not depend on threads: after a fault, all checks run again in order
  if (graph.tensors.size() < kWorthThreads || !is_sound(graph)) {
    check_storages(graph);
    check_names(graph);
    check_ranges(graph, 0, 1);
  }
  if (graph.forward) ForwardCheck(graph, *graph.forward).check();
  check_packed(graph);
}

}  // namespace loadline::graph
