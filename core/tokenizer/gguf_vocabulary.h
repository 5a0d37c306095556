// Parts of a GGUF tokenizer: vocabulary, special tokens, id of the pre-tokenizer.
#pragma once

#include "core/tokenizer/encoder.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "core/tokenizer/model_tokenizer.h"
#include "core/tokenizer/tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::tokenizer {

// --- The special tokens that GGUF wants: which they are, and whether they are put around texts.

struct SpecialTokens {
  std::vector<std::pair<std::string, std::uint32_t>> ids =
      {};                                                  // "bos", "eos", ...; the first of a name counts
  std::vector<std::pair<std::string, bool>> adds = {};     // the last of a name counts
  std::optional<bool> lowercase = {}, strip_accents = {};  // what the normalizers do
};

// As llama.cpp's converter reads them, whose reading of post-processors is rough: it looks at the first and
// last special token of a template. Ids from `below` on are left out.
SpecialTokens special_tokens(const ModelTokenizer& model, std::optional<std::uint64_t> below);

// --- The vocabulary of a GGUF file: texts, scores and types by id.

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

// Whether the merges make anything but itself of a word that is a piece, as words of ignore_merges do not
// show.
bool merges_matter(const Tokenizer& tokenizer);
// Whether every byte has a piece of its own.
bool has_all_bytes(const Tokenizer& tokenizer);

// --- The id by which llama.cpp knows how a tokenizer cuts texts: the GGUF key tokenizer.ggml.pre.

// Encodes the fixed text of assets/tokenizers/pre_tokenizers.json and looks the hash of its ids up there. The
// hash depends on the vocabulary too, so a tokenizer that was trained anew is unknown: then throws
// Error{unsupported} that names the hash, what the rules suggest, and carries the option `pre_tokenizer` as a
// remedy.
std::string pre_tokenizer_id(const Tokenizer& tokenizer, const Encoder& encoder);

// What speaks against this id for the tokenizer, as a sentence about llama.cpp; empty if nothing does. A hash
// of one text, or whoever states an id, may be wrong: the rules are asked independently, where one names the
// id.
std::string pre_tokenizer_doubt(std::string_view id, const Tokenizer& tokenizer);

// The steps of the first rule that names this id, for the way back; nothing if no rule does.
std::optional<std::vector<std::string>> steps_of_pre_tokenizer(std::string_view id);

// What llama.cpp does by the id alone, which no key says: whether a word that is a piece is taken whole,
// whatever the merges make of it; whether texts begin with a token if the key add_bos_token is not there.
bool takes_whole_words(std::string_view id);
bool begins_texts(std::string_view id);

// The steps in words, as the rules spell them: "Digits one by one", "ByteLevel".
std::vector<std::string> pre_tokenizer_steps(const Tokenizer& tokenizer);

}  // namespace loadline::tokenizer
