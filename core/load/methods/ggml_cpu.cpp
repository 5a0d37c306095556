// The table of types that ggml repacks for a CPU.
#include "core/base/checked_arithmetic.h"
#include "core/base/lookup.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/shared_embedding.h"

#include <algorithm>
#include <array>
#include <span>

namespace loadline {
namespace {

struct CpuRow {
  std::string_view id;
  CpuRepack cpu;
};
constexpr std::array<CpuRow, 2> kCpus = {{{"x86", CpuRepack::x86}, {"arm", CpuRepack::arm}}};

// A matrix is repacked if its rows are a multiple of this; 0: never.
struct TypeRow {
  DType type;
  std::uint64_t x86 = 0;
  std::uint64_t arm = 0;
};
constexpr std::array<TypeRow, 7> kTypes = {{{DType::q4_0, 8, 4},
                                            {DType::q4_k, 8, 8},
                                            {DType::iq4_nl, 8, 4},
                                            {DType::mxfp4, 8, 4},
                                            {DType::q8_0, 0, 4},
                                            {DType::q5_k, 0, 8},
                                            {DType::q6_k, 0, 8}}};

bool has_kernel(const Tensor& tensor, std::optional<CpuRepack> cpu) {
  const std::size_t rank = tensor.shape.size();
  const auto row = std::ranges::find(kTypes, tensor.dtype, &TypeRow::type);
  if (!cpu || row == kTypes.end() || rank < 2 || rank > 3) return false;
  const std::uint64_t multiple = cpu == CpuRepack::x86 ? row->x86 : row->arm;
  return multiple > 0 && tensor.shape[rank - 2] % multiple == 0;
}

std::uint64_t array_count(const MetaGraph& graph, std::string_view key) {
  const MetaValue* const value = find_metadata(graph, key);
  const auto* const array = value == nullptr ? nullptr : std::get_if<MetaArray>(value);
  return array == nullptr ? 0 : array->count;
}

}  // namespace

CpuRepack find_cpu_repack(std::string_view id) {
  return find_row(std::span<const CpuRow>(kCpus), id, "CPU to repack for").cpu;
}

std::string_view cpu_repack_id(CpuRepack cpu) { return kCpus[static_cast<std::size_t>(cpu)].id; }

std::vector<std::string> cpu_repack_ids() {
  std::vector<std::string> ids;
  for (const CpuRow& row : kCpus) ids.emplace_back(row.id);
  return ids;
}

std::vector<bool> repacked_storages(const MetaGraph& graph, std::optional<CpuRepack> cpu) {
  std::vector<bool> repacked(graph.storages.size(), false);
  if (!cpu) return repacked;
  for (const Tensor& tensor : graph.tensors)
    if (phase_of(tensor.name) != Phase::embedding && has_kernel(tensor, cpu))
      repacked[index(tensor.storage)] = true;
  if (const auto shared = shared_embedding(graph)) repacked[index(*shared)] = false;
  return repacked;
}

std::uint64_t repacked_head(const MetaGraph& graph, std::optional<CpuRepack> cpu) {
  const auto shared = shared_embedding(graph);
  if (!shared) return 0;
  const bool any = std::ranges::any_of(graph.tensors, [&](const Tensor& tensor) {
    return tensor.storage == *shared && has_kernel(tensor, cpu);
  });
  return any ? graph.storage(*shared).bytes : 0;
}

std::uint64_t vocabulary_bytes(const MetaGraph& graph) {
  constexpr std::uint64_t kToken = 243, kMerge = 235;
  const auto tokens = checked_mul(array_count(graph, "tokenizer.ggml.tokens"), kToken);
  const auto merges = checked_mul(array_count(graph, "tokenizer.ggml.merges"), kMerge);
  return tokens && merges ? checked_add(*tokens, *merges).value_or(0) : 0;
}

}  // namespace loadline
