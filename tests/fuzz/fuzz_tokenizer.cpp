// libFuzzer target for tokenizers: whatever a tokenizer.json or a SentencePiece model holds, reading it,
// encoding a few texts (BPE and WordPiece) and composing GGUF keys give ids below the limit, or an Error.
#include "core/base/error.h"
#include "core/tokenizer/encoder.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "core/tokenizer/model_tokenizer.h"

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loadline;
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const io::SourceFile file = io::SourceFile::from_memory(LOADLINE_TOKENIZER, {bytes.begin(), bytes.end()});
    const bool json = std::string_view(LOADLINE_TOKENIZER) == "tokenizer.json";
    tokenizer::ModelTokenizer model;
    (json ? model.json : model.sentencepiece) =
        json ? tokenizer::read_tokenizer_json(file) : tokenizer::read_sentencepiece(file);
    if (json && (model.json->kind == tokenizer::VocabularyKind::bpe ||
                 model.json->kind == tokenizer::VocabularyKind::wordpiece)) {
      const tokenizer::Encoder encoder(*model.json);
      for (const std::string_view text :
           {"", "Hello  world 123", "\xC3\xA9\xCC\x81\xF0\x9F\x9A\x80 \xE4\xB8\xAD<s>\n\t\x01"}) {
        const auto ids = encoder.encode(text, true);
        for (const std::uint32_t id : ids)
          if (id >= tokenizer::kMostTokens) std::abort();
        encoder.decode(ids);
      }
    }
    tokenizer::GgufTokenizerRequest request;
    request.pre_tokenizer = "default";
    tokenizer::gguf_tokenizer(model, request);
  } catch (const Error&) {
  }
  return 0;
}
