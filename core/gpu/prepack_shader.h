// The compute shader that packs weights on the device (shaders/prepack.comp).
#pragma once

#include "core/convert/numbers/prepack.h"
#include "core/gpu/device.h"

#include <cstdint>
#include <map>
#include <tuple>

namespace loadline::gpu {

// Whole blocks of elements of one weight, beginning with element `first`. `source` is a multiple of 4.
struct PrepackPiece {
  Prepack how;
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;  // as stored
  VkDeviceAddress source = 0;
  VkDeviceAddress target = 0;  // of the whole packed weight
};

// Makes each pipeline when it is first needed. The device must have been opened for shaders, and must outlive
// it. It must outlive the commands that it recorded.
class PrepackShader {
 public:
  explicit PrepackShader(const Device& device);

  // Throws Error{gpu} if the device refuses the pipeline.
  void record(VkCommandBuffer commands, const PrepackPiece& piece);

 private:
  VkPipeline pipeline_for(const Prepack& how);

  const Device& device_;
  UniqueShaderModule module_;
  UniquePipelineLayout layout_;
  std::map<std::tuple<DType, DType, PrepackLayout>, UniquePipeline> pipelines_;
};

}  // namespace loadline::gpu
