// Pieces by text, id and prefix, and the models that encode: one word, or a text as SentencePiece does.
#pragma once

#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/tokenizer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace loadline::tokenizer {

// --- Texts with a number each, found as prefixes of another text.

class ByteTrie {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // A text that is there already keeps its first number.
  void add(std::string_view text, std::uint32_t number);

  // Calls each(bytes, number) for every text that `text` begins with, the shortest first.
  template <typename Each>
  void for_each_prefix(std::string_view text, Each each) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto next = child(node, static_cast<unsigned char>(text[i]));
      if (next == kNone) return;
      node = next;
      if (numbers_[node] != kNone) each(i + 1, numbers_[node]);
    }
  }

  struct Found {
    std::size_t bytes = 0;
    std::uint32_t number = 0;
  };
  std::optional<Found> longest(std::string_view text) const;

 private:
  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return roots_.empty() ? kNone : roots_[byte];
    const auto found = children_.find(static_cast<std::uint64_t>(node) << 8 | byte);
    return found == children_.end() ? kNone : found->second;
  }

  std::vector<std::uint32_t> numbers_ = {kNone};
  std::vector<std::uint32_t> roots_ = {};  // children of the root, by byte
  std::unordered_map<std::uint64_t, std::uint32_t> children_ = {};
};

// --- Finds the pieces of a vocabulary by text and by id.

// The name of a byte's piece in vocabularies that fall back to bytes: "<0x0A>".
std::string byte_piece(unsigned char byte);

// Refers to the tokenizer's pieces, which must outlive it.
class Vocabulary {
 public:
  explicit Vocabulary(const Tokenizer& tokenizer);

  std::optional<std::uint32_t> id(std::string_view text) const;
  // Of several pieces with one id the last.
  const std::string* text(std::uint32_t id) const;
  // The ids of byte pieces; nothing for a byte without one.
  std::optional<std::uint32_t> byte(unsigned char byte) const { return bytes_[byte]; }
  std::size_t size() const { return ids_.size(); }

 private:
  const Tokenizer& tokenizer_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::array<std::optional<std::uint32_t>, 256> bytes_;
};

// --- What turns one word into token ids: BPE, WordPiece, Unigram, whole words.

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the ids of a word. Throws Error{malformed} for a word with unknown characters if the vocabulary
  // has no piece for them. May be called from several threads.
  virtual void encode(std::string_view word, std::vector<std::uint32_t>& ids) const = 0;
};

// The model of a tokenizer.json, which must outlive it. Throws Error{malformed}, naming the file, for merges
// of pieces that the vocabulary does not have, and Error{usage} for SentencePiece.
std::unique_ptr<WordModel> word_model(const Tokenizer& tokenizer);

// --- Encodes with a SentencePiece model, as its own library does.

class SentencePieceModel {
 public:
  // The tokenizer must outlive it. Throws Error{malformed}, naming the file and the piece.
  explicit SentencePieceModel(const Tokenizer& tokenizer);

  // Any bytes: what is not UTF-8 counts as U+FFFD.
  std::vector<std::uint32_t> encode(std::string_view text) const;
  std::string normalize(std::string_view text) const;

 private:
  struct Found {
    std::size_t bytes = 0;  // of the text
    std::string_view text = {};
  };
  struct Part {
    std::string_view text;
    std::uint32_t id;
  };
  Found normalized_prefix(std::string_view text) const;
  std::uint32_t id_of(std::string_view piece) const;
  // Bytes of the user-defined piece, or of the character, that `text` begins with.
  std::pair<std::size_t, bool> symbol(std::string_view text) const;
  std::vector<Part> encode_unigram(std::string_view text) const;
  std::vector<Part> encode_bpe(std::string_view text) const;
  std::vector<Part> encode_words(std::string_view text) const;
  std::vector<Part> encode_characters(std::string_view text) const;

  const Tokenizer& tokenizer_;
  Charsmap charsmap_;
  std::unordered_map<std::string_view, std::uint32_t> normal_, reserved_;
  std::vector<std::uint32_t> bytes_;  // the ids of the 256 byte pieces, if there are any
  ByteTrie pieces_, user_defined_;
  float least_ = 0, most_ = 0;
};

}  // namespace loadline::tokenizer
