// Runs a check with every instruction set that vectorised loops are compiled for.
#pragma once

#include <cstdint>

#include <hwy/targets.h>

namespace loadline::testing {

// Calls `check` with each instruction set that this machine and build have, then restores the best.
inline void for_each_vector_target(void (*check)(const char* name)) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace loadline::testing
