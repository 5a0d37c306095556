// Runs a check with each set of vector instructions.
#pragma once

#include <cstdint>

#include <hwy/highway.h>

namespace loadline::testing {

// Calls `check(name)` with each instruction set that this machine and build have, then restores the best.
template <typename Check>
void for_each_vector_target(Check check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::GetChosenTarget().Update(target);
    check(hwy::TargetName(target));
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace loadline::testing
