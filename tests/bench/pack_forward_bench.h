// The forward passes among what is packed.
#pragma once

namespace loadline::bench {

// Every described model at 1 x 2048 tokens under two profiles: a line each, and what they come to.
void pack_forward_passes();

}  // namespace loadline::bench
