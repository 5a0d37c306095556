// Access to parts of a flatbuffer that may be absent: an absent part counts as empty.
#pragma once

#include "core/base/error.h"
#include "importers/flatbuffers/flatbuffer.h"

#include <cstddef>
#include <span>
#include <string>

namespace loadline {

template <typename Vector>
std::size_t flat_count(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

template <typename Vector>
auto flat_span(const Vector* vector) {
  return vector == nullptr ? decltype(std::span(vector->data(), 0))()
                           : std::span(vector->data(), vector->size());
}

template <typename String>
std::string flat_text(const String* string) {
  return string == nullptr ? std::string() : string->str();
}

// Verifies the flatbuffer and its identifier and returns its root table. Throws Error{malformed} naming
// `file`. The caller passes the library's verifier type, so that only .cpp files include the library's
// header.
template <typename Verifier, typename Root>
const Root& flat_root(const FlatImage& image, const Root* (*root)(const void*), const char* identifier,
                      const std::string& file) {
  constexpr unsigned kDepth = 64, kTables = 10'000'000;
  Verifier verifier(image.data(), image.size(), kDepth, kTables);
  if (!verifier.template VerifyBuffer<Root>(identifier))
    throw Error(ErrorCode::malformed, {.file = file}, "is no valid flatbuffer of this format");
  return *root(image.data());
}

}  // namespace loadline
