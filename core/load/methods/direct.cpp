// Loads without a copy on the host: reads into mapped device memory, and file pages that the device sees.
#include "core/load/method_builder.h"
#include "core/load/methods/programs.h"

namespace loadline {

Plan load_direct(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
  const std::vector<BlockId> model = b.make_all(Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) b.read(model[i], b.order()[i]);
  return b.finish();
}

// A tensor's pages are mapped, imported as device-visible memory, copied from and given back. Nothing can
// drop them meanwhile: they are transfer memory, not page cache.
Plan load_host_import(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
  const std::vector<BlockId> model = b.make_all(Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const BlockId pages = b.make(Space::staging, b.order()[i], BlockUse::temporary);
    b.read(pages, b.order()[i]);
    b.move(model[i], pages);
    b.drop(pages);
  }
  return b.finish();
}

}  // namespace loadline
