// The special tokens that GGUF wants: which they are, and whether they are put around texts.
#pragma once

#include "core/tokenizer/model_tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

struct SpecialTokens {
  std::vector<std::pair<std::string, std::uint32_t>> ids =
      {};                                                  // "bos", "eos", ...; the first of a name counts
  std::vector<std::pair<std::string, bool>> adds = {};     // the last of a name counts
  std::optional<bool> lowercase = {}, strip_accents = {};  // what the normalizers do
};

// As llama.cpp's converter reads them, whose reading of post-processors is rough: it looks at the first and
// last special token of a template. Ids from `below` on are left out.
SpecialTokens special_tokens(const ModelTokenizer& model, std::optional<std::uint64_t> below);

}  // namespace loadline
