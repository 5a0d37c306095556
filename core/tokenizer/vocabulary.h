// Finds the pieces of a vocabulary by text and by id.
#pragma once

#include "core/tokenizer/tokenizer.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace loadline {

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

}  // namespace loadline
