// Reads a tokenizer's files: tokenizer.json of Hugging Face, and SentencePiece's model.
#pragma once

#include "core/io/source_file.h"
#include "core/tokenizer/tokenizer.h"

namespace loadline {

// Throws Error{malformed | unsupported | limit | io} naming the file and the entry: "tokenizer.json:
// normalizer.normalizers[1].pattern: ...". Regular expressions are compiled by the Encoder, not here.
Tokenizer read_tokenizer_json(const SourceFile& file);

// SentencePiece's protobuf (sentencepiece_model.proto of version 0.2). The same errors.
Tokenizer read_sentencepiece(const SourceFile& file);

}  // namespace loadline
