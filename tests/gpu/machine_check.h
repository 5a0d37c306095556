// Runs a plan on the device and holds it against the simulation and the dry machine.
#pragma once

#include "core/gpu/device.h"
#include "core/plan/plan.h"
#include "tests/gpu/model_file.h"

namespace loadline::gpu {

// Every device block alive at the end has the bytes of the simulation; the ledger is the projection; what
// was taken covers what was asked for.
void expect_as_simulated(const Device& device, const Plan& plan, const ModelFile& model);

}  // namespace loadline::gpu
