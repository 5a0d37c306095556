// Where a text is no JSON, in words of its own.
#pragma once

#include <string>
#include <string_view>

namespace loadline {

// "line 3, column 5: unexpected '}'; expected string literal": of a text that some parser refused. Where no
// fault of syntax is found, "no JSON: ..." says what else it may be.
std::string json_fault(std::string_view text);

}  // namespace loadline
