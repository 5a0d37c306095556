// The table of options for opening a model, for every front end.
#pragma once

#include "core/base/option.h"
#include "importers/resolve.h"

#include <span>

namespace loadline {

std::span<const Option<ResolveOptions>> open_options();

}  // namespace loadline
