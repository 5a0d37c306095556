// libFuzzer target for importance matrices: whatever the bytes are, reading them gives sorted entries whose
// weights are finite and not negative, or an Error.
#include "core/base/error.h"
#include "importers/gguf/gguf.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loadline;
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  try {
    const graph::ImportanceMatrix matrix =
        importers::read_importance_matrix(io::SourceFile::from_memory("input", std::move(bytes)));
    std::size_t weights = 0;
    for (std::size_t i = 0; i < matrix.tensors.size(); ++i) {
      const graph::TensorImportance& entry = matrix.tensors[i];
      if (i > 0 && entry.name <= matrix.tensors[i - 1].name) std::abort();
      for (const float weight : entry.weights)
        if (!std::isfinite(weight) || weight < 0) std::abort();
      weights += entry.weights.size();
    }
    if (weights > size / sizeof(float)) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
