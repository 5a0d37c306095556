// Loads without a copy on the host: reads into mapped device memory, and file pages that the device imports.
#include "core/load/methods/programs.h"

namespace loadline {

Plan load_direct(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all(Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) b.read(model[i], b.order()[i]);
  return b.finish();
}

// A tensor's pages are mapped, imported as device-visible memory, copied from and released. While imported
// they cannot be evicted, so they count as staging, not page cache.
Plan load_host_import(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all(Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const BlockId pages = b.load(Space::staging, b.order()[i]);
    b.move(model[i], pages);
    b.drop(pages);
  }
  return b.finish();
}

}  // namespace loadline
