// A text on its way to token ids: the parts into which it has been cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace loadline {

struct TextPiece {
  std::string text = {};
  // How many of its first bytes come from the first character of the whole text: only the text's first piece,
  // in Metaspace's scheme `first`, gets a space in front.
  std::size_t first_bytes = 0;
  std::optional<std::uint32_t> token = {};  // an added token: nothing else looks at the text
};

}  // namespace loadline
