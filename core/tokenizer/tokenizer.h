// A tokenizer as plain data: its vocabulary, and the steps that turn a text into token ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::tokenizer {

// Ids are below this: the largest published vocabularies have a million pieces.
inline constexpr std::uint32_t kMostTokens = 1 << 22;

enum class VocabularyKind : std::uint8_t { bpe, wordpiece, unigram, word_level, sentencepiece };
std::string_view vocabulary_kind_name(VocabularyKind kind);

// The values are those of SentencePiece and of GGUF.
enum class PieceType : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct VocabularyPiece {
  std::uint32_t id = 0;
  std::string text = {};
  double score = 0;                    // of Unigram and SentencePiece
  PieceType type = PieceType::normal;  // of SentencePiece
};

// Two pieces that BPE joins, the most important pair first.
struct Merge {
  std::string left = {}, right = {};
};

// What SentencePiece's own model file says beside its pieces.
struct SentencePieceSpec {
  enum class Model : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  Model model = Model::unigram;
  bool treat_whitespace_as_suffix = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::string charsmap = {};
};

// A text, or a regular expression in Oniguruma's Ruby syntax.
struct TextPattern {
  bool regex = false;
  std::string text = {};
};

struct NormalizerStep {
  enum class Kind : std::uint8_t {
    nfc,
    nfd,
    nfkc,
    nfkd,
    lowercase,
    strip_accents,
    bert,
    replace,
    prepend,
    strip,
    nmt,
    precompiled,
    byte_level
  };
  Kind kind = Kind::nfc;
  TextPattern pattern = {};                                                         // replace
  std::string content = {};                                                         // replace, prepend
  bool left = false, right = false;                                                 // strip
  bool clean_text = false, spaced_ideographs = false, lower = false, bare = false;  // bert
  std::string charsmap = {};                                                        // precompiled
  // What bert's own field said; `bare` has what follows from it.
  std::optional<bool> strip_accents = {};
};

enum class SplitBehavior : std::uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous
};
enum class PrependScheme : std::uint8_t { first, never, always };

struct PreTokenizerStep {
  enum class Kind : std::uint8_t {
    byte_level,
    split,
    whitespace,
    whitespace_split,
    punctuation,
    digits,
    bert,
    metaspace,
    char_delimiter,
    fixed_length,
    unicode_scripts
  };
  Kind kind = Kind::byte_level;
  bool add_prefix_space = false, use_regex = false;  // byte_level
  TextPattern pattern = {};                          // split
  SplitBehavior behavior = SplitBehavior::removed;   // split, punctuation
  bool invert = false;                               // split
  bool individual = false;                           // digits
  std::string replacement = {};                      // metaspace, char_delimiter: one character
  PrependScheme prepend = PrependScheme::always;     // metaspace
  bool divide = true;                                // metaspace: its field `split`
  std::uint64_t length = 0;                          // fixed_length
};

// A part of a template: a special token, or the text's own ids.
struct TemplatePart {
  bool special = false;
  std::string name = {};                // the token's name, or the sequence: "A" or "B"
  std::vector<std::uint32_t> ids = {};  // of a special token
};

struct PostStep {
  enum class Kind : std::uint8_t { byte_level, bert, roberta, templated };
  Kind kind = Kind::byte_level;
  std::vector<TemplatePart> single = {}, pair = {};          // templated
  std::pair<std::string, std::uint32_t> cls = {}, sep = {};  // bert, roberta
};

struct DecoderStep {
  enum class Kind : std::uint8_t {
    byte_level,
    replace,
    byte_fallback,
    fuse,
    strip,
    metaspace,
    wordpiece,
    bpe,
    ctc
  };
  Kind kind = Kind::fuse;
  TextPattern pattern = {};                       // replace
  std::string content = {};                       // replace, strip
  std::uint64_t start = 0, stop = 0;              // strip
  std::string replacement = {};                   // metaspace
  PrependScheme prepend = PrependScheme::always;  // metaspace
  std::string affix = {};                         // wordpiece's prefix, bpe's suffix
  bool cleanup = false;                           // wordpiece, ctc
  std::string pad = {}, delimiter = {};           // ctc
};

// A token that is found in the text before anything else looks at it.
struct AddedToken {
  std::uint32_t id = 0;
  std::string text = {};
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
};

struct Tokenizer {
  std::string file = {};  // as shown to the user
  VocabularyKind kind = VocabularyKind::bpe;
  std::vector<VocabularyPiece> pieces = {};  // in ascending order of ids, which may have gaps
  std::vector<Merge> merges = {};
  std::optional<std::string> unknown = {};       // BPE, WordPiece, word level
  std::optional<std::uint32_t> unknown_id = {};  // Unigram
  std::string subword_prefix = {};               // before each piece but a word's first
  std::string word_suffix = {};                  // behind a word's last piece
  std::uint64_t most_word_characters = 100;      // WordPiece: a longer word is unknown
  bool byte_fallback = false, fuse_unknown = false, ignore_merges = false;
  SentencePieceSpec sentencepiece = {};

  std::vector<AddedToken> added = {};
  std::vector<NormalizerStep> normalizers = {};  // sequences are flattened
  std::vector<PreTokenizerStep> pre_tokenizers = {};
  std::vector<PostStep> post = {};
  std::vector<DecoderStep> decoders = {};
  std::string decoder_type = {};  // as the file names it; "" without a decoder
};

}  // namespace loadline::tokenizer
