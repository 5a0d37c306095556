// pack() for tests that neither watch its progress nor stop it.
#pragma once

#include "core/packing/pack.h"

namespace loadline::tests {

inline packing::Packing pack(const packing::Problem& problem, const packing::PackOptions& options) {
  Progress progress;
  return packing::pack(problem, options, progress);
}

}  // namespace loadline::tests
