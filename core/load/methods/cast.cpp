// Loads whose point is the cast: on which side of the link a tensor becomes what it is used as.
#include "core/load/method_builder.h"
#include "core/load/methods/programs.h"

namespace loadline {

// Everything is on the host as stored; a tensor's source goes when the tensor is there.
Plan load_cast_on_host(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
  const std::vector<BlockId> read = b.make_all(Space::host, BlockUse::temporary);
  for (std::size_t i = 0; i < read.size(); ++i) b.read(read[i], b.order()[i]);
  mark(b.plan(), "file data on the host");
  for (std::size_t i = 0; i < read.size(); ++i) {
    b.move_cast(b.make_cast(Space::device, b.order()[i]), read[i], b.order()[i]);
    b.drop(read[i]);
  }
  return b.finish();
}

// A tensor comes over as stored and gets memory of its own beside that.
Plan load_cast_on_device(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
  for (const StorageId id : b.order()) {
    const BlockId read = b.make(Space::host, id, BlockUse::temporary);
    b.read(read, id);
    const BlockId stored = b.make(Space::device, id, BlockUse::temporary);
    b.move(stored, read);
    b.drop(read);
    b.move_cast(b.make_cast(Space::device, id), stored, id);
    b.drop(stored);
  }
  return b.finish();
}

}  // namespace loadline
