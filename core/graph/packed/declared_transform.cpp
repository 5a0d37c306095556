// Splits keys at dots and underscores.
#include "core/graph/packed/declared_transform.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace loadline {
namespace {

// "rotary" and "rope" are not among them: those turn activations in every file.
constexpr std::array<std::string_view, 6> kWords = {"hadamard", "rotated",   "rotation",
                                                    "quarot",   "spinquant", "transformed"};

bool declares(std::string_view key) {
  std::string words = lower_case(key);
  std::ranges::replace(words, '_', '.');
  return std::ranges::any_of(split(words, '.'), [](std::string_view word) {
    return std::ranges::find(kWords, word) != kWords.end();
  });
}

}  // namespace

const MetaEntry* declared_transform(const MetaGraph& graph) {
  if (graph.format != "gguf") return nullptr;
  const auto entry =
      std::ranges::find_if(graph.metadata, [](const MetaEntry& item) { return declares(item.key); });
  return entry == graph.metadata.end() ? nullptr : &*entry;
}

}  // namespace loadline
