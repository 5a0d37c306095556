// What a GGUF file says about its tokenizer, as keys and values: tokenizer.ggml.* and
// tokenizer.chat_template*.
#pragma once

#include "core/tokenizer/model_tokenizer.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace loadline {

// GGUF's types bool, u32, string, and arrays of strings, f32, i32 and u8.
using GgufTokenizerValue =
    std::variant<bool, std::uint32_t, std::string, std::vector<std::string>, std::vector<float>,
                 std::vector<std::int32_t>, std::vector<std::uint8_t>>;
struct GgufTokenizerKey {
  std::string name = {};
  GgufTokenizerValue value = {};
};

// How the vocabulary is written. `automatic` follows the architecture that config.json names, or the files.
enum class GgufVocabulary : std::uint8_t {
  automatic,
  bpe,
  sentencepiece,
  llama_bpe,
  wordpiece,
  unigram,
  xlm_roberta
};

struct GgufTokenizerRequest {
  GgufVocabulary vocabulary = GgufVocabulary::automatic;
  std::string pre_tokenizer = {};  // instead of the one that is found, unless empty
};

struct GgufTokenizer {
  GgufVocabulary vocabulary = GgufVocabulary::bpe;  // never automatic
  std::vector<GgufTokenizerKey> keys = {};          // no name occurs twice
  std::vector<std::string> notes = {};              // sentences about llama.cpp: what may go wrong there
};

// The same keys and values as llama.cpp's converter writes. Throws Error{unsupported | malformed | limit}
// naming the file: no tokenizer, an architecture whose vocabulary only its own Python code can read, ids
// beyond vocab_size, an unknown pre-tokeniser.
GgufTokenizer gguf_tokenizer(const ModelTokenizer& model, const GgufTokenizerRequest& request);

}  // namespace loadline
