// One pipeline for each pair of types and layout; addresses and sizes are push constants.
#include "core/gpu/prepack_shader.h"

#include <array>
#include <cassert>

namespace loadline::gpu {
namespace {

constexpr std::uint32_t kCode[] = {
#include "embedded/prepack.spv.inc"
};
constexpr std::uint32_t kGroup = 128;  // invocations; local_size_x of the shader

// As the shader declares it.
struct Push {
  VkDeviceAddress source = 0;
  VkDeviceAddress target = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

// The number by which the shader knows a type.
std::uint32_t type_number(DType type) {
  constexpr std::array kTypes = {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_k};
  std::uint32_t number = 0;
  while (kTypes[number] != type) ++number;
  return number;
}

UniquePipelineLayout make_layout(VkDevice device) {
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Push)};
  auto info = vulkan_struct<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  return {device, vkCreatePipelineLayout, info, "lay out a shader's constants"};
}

UniqueShaderModule make_module(VkDevice device) {
  auto info = vulkan_struct<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  info.codeSize = sizeof(kCode);
  info.pCode = kCode;
  return {device, vkCreateShaderModule, info, "load a shader"};
}

}  // namespace

PrepackShader::PrepackShader(const Device& device)
    : device_(device), module_(make_module(device.get())), layout_(make_layout(device.get())) {}

VkPipeline PrepackShader::pipeline_for(const Prepack& how) {
  UniquePipeline& made = pipelines_[{how.from, how.to, how.layout}];
  if (made.get() != VK_NULL_HANDLE) return made.get();
  const std::array<std::uint32_t, 3> values = {type_number(how.from), type_number(how.to),
                                               static_cast<std::uint32_t>(how.layout)};
  const std::array<VkSpecializationMapEntry, 3> entries = {{{0, 0, 4}, {1, 4, 4}, {2, 8, 4}}};
  VkSpecializationInfo special = {};
  special.mapEntryCount = entries.size();
  special.pMapEntries = entries.data();
  special.dataSize = sizeof(values);
  special.pData = values.data();
  auto info = vulkan_struct<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage =
      vulkan_struct<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module_.get();
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  info.layout = layout_.get();
  VkPipeline pipeline = VK_NULL_HANDLE;
  check(vkCreateComputePipelines(device_.get(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline),
        "build the shader that packs weights");
  made = UniquePipeline(device_.get(), pipeline);
  return pipeline;
}

void PrepackShader::record(VkCommandBuffer commands, const PrepackPiece& piece) {
  const DTypeInfo& from = dtype_info(piece.how.from);
  assert(piece.source % 4 == 0 && piece.bytes % from.block_bytes == 0);
  const Push push = {
      .source = piece.source,
      .target = piece.target,
      .first = static_cast<std::uint32_t>(piece.first),
      .count = static_cast<std::uint32_t>(piece.bytes / from.block_bytes * from.block_elements),
      .rows = static_cast<std::uint32_t>(piece.how.rows),
      .columns = static_cast<std::uint32_t>(piece.how.columns)};
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_for(piece.how));
  vkCmdPushConstants(commands, layout_.get(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push), &push);
  vkCmdDispatch(commands, (push.count + kGroup - 1) / kGroup, 1, 1);
}

}  // namespace loadline::gpu
