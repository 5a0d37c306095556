// What a GGUF file says about its tokenizer, read from its keys.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

// Names of keys are without "tokenizer.ggml.".
struct GgufTokenizerKeys {
  std::string file = {};
  std::string model = {}, pre = {};
  std::vector<std::string> tokens = {};
  std::vector<float> scores = {};        // one a token, or none
  std::vector<std::int32_t> types = {};  // PieceType, one a token, or none
  std::vector<std::string> merges = {};
  std::string charsmap = {};
  std::vector<std::pair<std::string, std::uint32_t>> ids = {};      // "bos_token_id"; of tokens that exist
  std::vector<std::pair<std::string, bool>> flags = {};             // "add_bos_token"
  std::vector<std::pair<std::string, std::string>> templates = {};  // by name; the usual one has none
  std::optional<std::uint64_t> context = {};                        // tokens that the model was trained for

  std::optional<std::uint32_t> id(std::string_view name) const;
  std::optional<bool> flag(std::string_view name) const;
  Error fail(std::string_view key, std::string_view detail) const;
};

// Throws Error{malformed} naming the key: another type, scores or types that are not one a token. Throws
// Error{limit} for more than kMostTokens tokens or four times as many merges, and Error{io}.
GgufTokenizerKeys read_tokenizer_keys(const MetaGraph& gguf);

}  // namespace loadline
