// Reading: tokenizer.json, a SentencePiece model, and the files beside them.
#pragma once

#include "core/io/source_file.h"
#include "core/tokenizer/tokenizer.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::tokenizer {

// --- Reads a tokenizer's files: tokenizer.json of Hugging Face, and SentencePiece's model.

// Throws Error{malformed | unsupported | limit | io} naming the file and the entry: "tokenizer.json:
// normalizer.normalizers[1].pattern: ...". Regular expressions are compiled by the Encoder, not here.
Tokenizer read_tokenizer_json(const io::SourceFile& file);

// SentencePiece's protobuf (sentencepiece_model.proto of version 0.2). The same errors.
Tokenizer read_sentencepiece(const io::SourceFile& file);

// --- All that a model's folder says about its tokenizer, from up to ten files.

// A special token's text, which files give as a string or as an object with the token's flags.
struct SpecialText {
  std::string text = {};
  bool object = false;
};

struct ChatTemplate {
  std::string name = {};  // empty if it is the only one and has no name
  std::string text = {};
};

// What stands beside the vocabulary. Names are without their endings: "bos" of bos_token, add_bos_token and
// bos_token_id.
struct TokenizerSettings {
  bool has_tokenizer_config = false;
  std::map<std::string, SpecialText> special = {};  // tokenizer_config.json
  std::map<std::string, bool> adds = {};            // tokenizer_config.json
  std::vector<std::string> extra_special = {};      // additional_special_tokens, extra_special_tokens
  std::optional<bool> add_prefix_space = {}, clean_up_spaces = {};
  std::string tokenizer_class = {};
  std::vector<AddedToken> added_decoder = {};                     // tokenizer_config.json, in ascending ids
  std::map<std::string, std::string> special_map = {};            // special_tokens_map.json
  std::vector<std::pair<std::string, std::uint32_t>> added = {};  // added_tokens.json
  // tokenizer_config.json, else chat_template.jinja with additional_chat_templates/, else chat_template.json
  std::vector<ChatTemplate> chat_templates = {};
  std::map<std::string, std::uint32_t> ids = {};                          // config.json, its text_config last
  std::map<std::string, std::vector<std::uint32_t>> generation_ids = {};  // generation_config.json
  std::optional<std::uint64_t> vocabulary_size = {}, vocabulary_size_per_layer_input = {};
  std::uint64_t token_types = 1;  // type_vocab_size
  std::vector<std::string> architectures = {};
};

struct ModelTokenizer {
  std::optional<Tokenizer> json = {};           // tokenizer.json
  std::optional<Tokenizer> sentencepiece = {};  // tokenizer.model, spiece.model or sentencepiece.bpe.model
  TokenizerSettings settings = {};
};

// Opens a file of the folder, null if there is none (as Source::open_sibling), and lists the files of a
// folder inside it.
using OpenTokenizerFile = std::function<std::shared_ptr<const io::SourceFile>(const std::string& name)>;
using ListTokenizerFiles = std::function<std::vector<std::string>(const std::string& folder)>;

// Throws Error{malformed | unsupported | limit | io} naming the file and the entry. Without any tokenizer
// both members are empty.
ModelTokenizer read_model_tokenizer(const OpenTokenizerFile& open, const ListTokenizerFiles& list);

// tokenizer.json with what its settings change: added tokens of tokenizer_config.json, special tokens that
// the vocabulary lacks, and the tokens around a text if the settings say so. `json` must be there.
Tokenizer tokenizer_with_settings(const ModelTokenizer& model);

}  // namespace loadline::tokenizer
