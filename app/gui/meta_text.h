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

// With a line for each element and two spaces for each level, if `text` looks like JSON without line
// breaks; else as it is. What is no JSON comes out with the same characters, blanks apart.
std::string broken_json(std::string_view text);

// A text to look for in others, without regard to the case of ASCII letters.
class Needle {
 public:
  explicit Needle(std::string_view text);
  bool in(std::string_view text) const;
  bool empty() const { return lower_.empty(); }

 private:
  std::string lower_;
};

}  // namespace loadline::gui
