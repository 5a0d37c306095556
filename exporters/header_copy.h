// Copies an array of metadata from its file to a header, however large it is.
#pragma once

#include "core/graph/meta_graph.h"

#include <functional>
#include <span>

namespace loadline {

// Gives the bytes of all elements to `append` in pieces, numbers and lengths little-endian. Throws Error{io}
// and, where the file has changed since it was opened, Error{malformed}.
void copy_elements(const MetaGraph& source, const MetaArray& array,
                   const std::function<void(std::span<const std::byte>)>& append);

}  // namespace loadline
