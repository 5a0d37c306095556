// Composes error messages and names error codes.
#include "core/base/error.h"

#include "core/base/text.h"

#include <array>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace loadline {
namespace {

// A name can have a megabyte.
std::string shown_name(std::string_view raw) {
  constexpr std::size_t kMostShown = 300;
  return safe_display(raw, kMostShown);
}

std::string compose(const ErrorPlace& place, std::string_view detail) {
  std::string text;
  if (!place.file.empty()) text += shown_name(place.file) + ": ";
  if (place.byte) text += fmt::format("byte {}: ", *place.byte);
  if (place.tensor) text += fmt::format("tensor '{}': ", shown_name(*place.tensor));
  // what a caller has escaped stays as it is
  return text.append(safe_display(detail));
}

}  // namespace

std::string_view error_code_name(ErrorCode code) {
  constexpr std::array<std::string_view, 8> kNames = {"io",  "malformed", "unsupported", "limit",
                                                      "gpu", "cancelled", "usage",       "no_fit"};
  return kNames[static_cast<std::size_t>(code)];
}

Error::Error(ErrorCode code, ErrorPlace place, std::string_view detail)
    : std::runtime_error(compose(place, detail)), code_(code), place_(std::move(place)) {}

Error Error::with(Remedy remedy) const {
  Error error = *this;
  error.remedy_ = std::move(remedy);
  return error;
}

Error system_error(std::string_view file, std::string_view verb, int number) {
  return Error(ErrorCode::io, {.file = std::string(file)}, "cannot {}: {}", verb, std::strerror(number));
}

}  // namespace loadline
