// A tokenizer as GGUF keys, and GGUF keys as the files that transformers reads.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/tokenizer/model_tokenizer.h"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::tokenizer {

// --- What a GGUF file says about its tokenizer, as keys and values: tokenizer.ggml.* and
// tokenizer.chat_template*.

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
  // Settings of the tokenizer's files, each with its value, of which no key tells: llama.cpp cuts some texts
  // in another way. "added_tokens.lstrip", "normalizer"
  std::vector<std::pair<std::string, std::string>> unheeded = {};
};

// The same keys and values as llama.cpp's converter writes. Throws Error{unsupported | malformed | limit}
// naming the file: no tokenizer, an architecture whose vocabulary only its own Python code can read, ids
// beyond vocab_size, an unknown pre-tokenizer.
GgufTokenizer gguf_tokenizer(const ModelTokenizer& model, const GgufTokenizerRequest& request);

// --- The tokenizer of a GGUF file as the files that transformers reads.

struct HuggingFaceTokenizer {
  struct File {
    std::string name;  // "tokenizer.json"
    std::string text;
  };
  std::vector<File> files = {};        // tokenizer.json, tokenizer_config.json, generation_config.json
  std::vector<std::string> lost = {};  // sentences: what the keys do not say
};

// Reads the keys tokenizer.* of the graph and their arrays from its file. Without a vocabulary there are no
// files. Throws Error{malformed | limit} naming the file and the key, and Error{io}.
HuggingFaceTokenizer hugging_face_tokenizer(const graph::MetaGraph& gguf);

}  // namespace loadline::tokenizer
