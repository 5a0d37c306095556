// Parts of a flatbuffer that may be absent: they are then empty.
#pragma once

#include <cstddef>
#include <string>

namespace loadline {

template <typename Vector>
std::size_t flat_count(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

template <typename String>
std::string flat_text(const String* string) {
  return string == nullptr ? std::string() : string->str();
}

}  // namespace loadline
