// Copies a metadata array of any size from its file to a header.
#pragma once

#include "core/graph/meta_graph.h"

#include <functional>
#include <span>

namespace loadline {

// Passes the bytes of all elements to `append` in pieces; numbers and lengths are little-endian. Throws
// Error{io}, and Error{malformed} if the file has changed since it was opened.
void copy_elements(const MetaGraph& source, const MetaArray& array,
                   const std::function<void(std::span<const std::byte>)>& append);

}  // namespace loadline
