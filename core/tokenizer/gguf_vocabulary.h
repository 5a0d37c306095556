// The vocabulary of a GGUF file: texts, scores and types by id.
#pragma once

#include "core/tokenizer/encoder.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "core/tokenizer/model_tokenizer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

struct GgufTokens {
  std::vector<std::string> texts = {};
  std::vector<float> scores = {};  // empty for byte-level BPE and WordPiece
  std::vector<std::int32_t> types = {};
};

// Each way as llama.cpp's converter has it. `tokenizer` is tokenizer_with_settings(model).
GgufTokens bpe_tokens(const ModelTokenizer& model, const Tokenizer& tokenizer, const Encoder& encoder);
// Pieces of byte-level BPE, but words begin with U+2581 and pieces that continue a word have no prefix.
GgufTokens wordpiece_tokens(const ModelTokenizer& model, const Tokenizer& tokenizer, const Encoder& encoder);
// `per_layer`: config.json's vocab_size_per_layer_input counts.
GgufTokens sentencepiece_tokens(const ModelTokenizer& model, bool per_layer);
// Phi-3's: only files say what is special, and tokenizer.json adds tokens too.
GgufTokens phi3_tokens(const ModelTokenizer& model);
// Unigram from SentencePiece's model; tokens of tokenizer_config.json are not added.
GgufTokens unigram_tokens(const ModelTokenizer& model);
GgufTokens llama_bpe_tokens(const ModelTokenizer& model, const Tokenizer& tokenizer);
GgufTokens xlm_roberta_tokens(const ModelTokenizer& model, const Tokenizer& tokenizer);

}  // namespace loadline
