// Metadata as text in a window: beginnings of long values, JSON with line breaks, substring search.
#pragma once

#include "core/graph/meta_value.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace loadline::gui {

// At most `most` bytes, not cut inside a UTF-8 sequence.
std::string_view beginning(std::string_view text, std::size_t most);
// The value in one line, cut after about `most` bytes; runs of blanks and line breaks become one blank.
std::string meta_line(const MetaValue& value, std::size_t most);
// The type as a person reads it: "u32", "string", "f32[32,000]".
std::string meta_type_text(const MetaValue& value);

// Breaks JSON without line breaks into a line for each element, indented by two spaces a level. Any other
// text is returned unchanged. Text that only looks like JSON keeps all its characters except blanks.
std::string broken_json(std::string_view text);

// A text to search for in other texts, ignoring the case of ASCII letters.
class Needle {
 public:
  explicit Needle(std::string_view text);
  bool in(std::string_view text) const;  // an empty needle is in every text

 private:
  std::string lower_;
};

}  // namespace loadline::gui
