// ExecuTorch's Vulkan delegate, before and after pytorch/executorch#13501.
#include "core/plan/method_builder.h"
#include "core/plan/method_programs.h"

namespace loadline {
namespace {

std::vector<BlockId> read_all_to_host(MethodBuilder& b) {
  std::vector<BlockId> read;
  for (const StorageId id : b.order()) {
    read.push_back(b.make(Space::host, id, BlockUse::temporary));
    b.read(read.back(), id);
  }
  mark(b.plan(), "file data on the host");
  return read;
}

// Through a staging buffer of its size; the host copy goes as soon as that is filled.
void prepack(MethodBuilder& b, BlockId staging, BlockId read, BlockId weight) {
  b.move(staging, read);
  b.drop(read);
  b.move(weight, staging);
  b.drop(staging);
}

}  // namespace

Plan load_executorch_before(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  MethodBuilder b(graph, order, options);
  const std::vector<BlockId> read = read_all_to_host(b);
  const std::vector<BlockId> model = b.make_all(Space::device);
  b.activations();
  mark(b.plan(), "prepack starts");
  for (std::size_t i = 0; i < model.size(); ++i)
    prepack(b, b.make(Space::staging, b.order()[i], BlockUse::temporary), read[i], model[i]);
  mark(b.plan(), "loaded");
  return std::move(b.plan());
}

Plan load_executorch_after(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  MethodBuilder b(graph, order, options);
  const std::vector<BlockId> read = read_all_to_host(b);
  mark(b.plan(), "prepack starts");
  for (std::size_t i = 0; i < read.size(); ++i) {
    const BlockId staging = b.make(Space::staging, b.order()[i], BlockUse::temporary);
    prepack(b, staging, read[i], b.make(Space::device, b.order()[i]));
  }
  return b.finish();
}

}  // namespace loadline
