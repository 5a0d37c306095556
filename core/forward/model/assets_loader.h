// The assets that the program knows, for code that only passes them on.
#pragma once

#include <functional>
#include <memory>

namespace loadline::forward {

struct ForwardAssets;  // known_models.h

std::shared_ptr<const ForwardAssets> built_in_assets();

// Loads the assets when they are first needed. An empty function means the built-in assets.
using AssetsLoader = std::function<std::shared_ptr<const ForwardAssets>()>;

}  // namespace loadline::forward
