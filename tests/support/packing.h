// pack() for tests that neither watch its progress nor stop it.
#pragma once

#include "core/packing/pack.h"

namespace loadline {

inline Packing pack(const Problem& problem, const PackOptions& options) {
  Progress progress;
  return pack(problem, options, progress);
}

}  // namespace loadline
