// Base64, in which JSON holds bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace loadline {

// The bytes of a text in base64 with its padding (RFC 4648); nothing if the text is not base64.
std::optional<std::string> base64_bytes(std::string_view text);
std::string base64_text(std::string_view bytes);

}  // namespace loadline
