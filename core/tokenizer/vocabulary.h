// Pieces by text, id and prefix, and the models that encode one word.
#pragma once

#include "core/tokenizer/tokenizer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace loadline::tokenizer {

// --- Texts with a number each, found as prefixes of another text.

class ByteTrie {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // A text that is there already keeps its first number.
  void add(std::string_view text, std::uint32_t number);

  struct Found {
    std::size_t bytes = 0;
    std::uint32_t number = 0;
  };
  // The longest text that `text` begins with.
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

// Refers to the tokenizer's pieces, which must outlive it.
class Vocabulary {
 public:
  explicit Vocabulary(const Tokenizer& tokenizer);

  std::optional<std::uint32_t> id(std::string_view text) const;
  // Of several pieces with one id the last.
  const std::string* text(std::uint32_t id) const;
  // The ids of byte pieces; nothing for a byte without one.
  std::optional<std::uint32_t> byte(unsigned char byte) const { return bytes_[byte]; }

 private:
  const Tokenizer& tokenizer_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::array<std::optional<std::uint32_t>, 256> bytes_;
};

// --- What turns one word into token ids: BPE, WordPiece.

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the ids of a word. Throws Error{malformed} for a word with unknown characters if the vocabulary
  // has no piece for them. May be called from several threads.
  virtual void encode(std::string_view word, std::vector<std::uint32_t>& ids) const = 0;
};

// The model of a tokenizer.json, which must outlive it. Throws Error{malformed}, naming the file, for merges
// of pieces that the vocabulary does not have, and Error{usage} for a kind that is neither BPE nor WordPiece.
std::unique_ptr<WordModel> word_model(const Tokenizer& tokenizer);
// That of a BPE vocabulary as if its ignore_merges were false: only merges make pieces.
std::unique_ptr<WordModel> merging_model(const Tokenizer& tokenizer);

}  // namespace loadline::tokenizer
