// Loads that differ in where weights are cast: on the host or on the device.
#include "core/load/methods/programs.h"

namespace loadline {

// The host first holds all weights in their stored type. Each is cast onto the device, then its source is
// freed.
Plan load_cast_on_host(MethodBuilder& b) {
  const std::vector<BlockId> read = b.make_all(Space::host, BlockUse::temporary);
  for (std::size_t i = 0; i < read.size(); ++i) b.read(read[i], b.order()[i]);
  mark(b.plan(), "file data on the host");
  for (std::size_t i = 0; i < read.size(); ++i) {
    b.move_cast(b.make_cast(Space::device, b.order()[i]), read[i], b.order()[i]);
    b.drop(read[i]);
  }
  return b.finish();
}

// A tensor arrives on the device in its stored type, then is cast into a block of its own beside it.
Plan load_cast_on_device(MethodBuilder& b) {
  for (const StorageId id : b.order()) {
    const BlockId read = b.load(Space::host, id);
    const BlockId stored = b.make(Space::device, id, BlockUse::temporary);
    b.move(stored, read);
    b.drop(read);
    b.move_cast(b.make_cast(Space::device, id), stored, id);
    b.drop(stored);
  }
  return b.finish();
}

}  // namespace loadline
