// Names of the kinds of vocabularies.
#include "core/tokenizer/tokenizer.h"

namespace loadline {

std::string_view vocabulary_kind_name(VocabularyKind kind) {
  switch (kind) {
    case VocabularyKind::bpe:
      return "BPE";
    case VocabularyKind::wordpiece:
      return "WordPiece";
    case VocabularyKind::unigram:
      return "Unigram";
    case VocabularyKind::word_level:
      return "WordLevel";
    case VocabularyKind::sentencepiece:
      return "SentencePiece";
  }
  return "";
}

}  // namespace loadline
