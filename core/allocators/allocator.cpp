// The table of allocators.
#include "core/allocators/allocator.h"

#include "core/base/lookup.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

namespace loadline {
namespace {

constexpr std::array<AllocatorRow, 7> kAllocators = {{
    {"exact", AllocatorModel::exact, "exactly the bytes requested", true, true},
    {"torch", AllocatorModel::torch,
     "device memory by PyTorch's caching allocator: multiples of 512 bytes from segments of 2 and 20 MiB",
     true, true},
    {"malloc", AllocatorModel::malloc, "host memory by glibc's malloc, which often keeps freed memory", true,
     false},
    {"vulkan", AllocatorModel::vulkan,
     "device and staging memory in blocks of up to 256 MiB, as `upload` allocates them", true, false},
    {"arena", AllocatorModel::arena, "each space as one range with offsets planned ahead", true, false},
    {"ggml", AllocatorModel::ggml, "one buffer by best fit, as ggml's graph allocator", false, true},
    {"onnxruntime", AllocatorModel::onnxruntime, "onnxruntime's memory pattern", false, true},
}};

}  // namespace

std::span<const AllocatorRow> allocators() { return kAllocators; }

AllocatorModel load_allocator(std::string_view id) {
  std::vector<AllocatorRow> rows;
  for (const AllocatorRow& row : kAllocators)
    if (row.of_loads) rows.push_back(row);
  return find_row(std::span<const AllocatorRow>(rows), id, "allocator").model;
}

std::string_view allocator_id(AllocatorModel model) {
  const auto row = std::ranges::find(kAllocators, model, &AllocatorRow::model);
  assert(row != kAllocators.end());
  return row->id;
}

}  // namespace loadline
