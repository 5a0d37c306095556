// The id by which llama.cpp knows how a tokenizer cuts texts: the GGUF key tokenizer.ggml.pre.
#pragma once

#include "core/tokenizer/encoder.h"
#include "core/tokenizer/tokenizer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

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

// The steps in words, as the rules spell them: "Digits one by one", "ByteLevel".
std::vector<std::string> pre_tokenizer_steps(const Tokenizer& tokenizer);

}  // namespace loadline
