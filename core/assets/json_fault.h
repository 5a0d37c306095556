// Says where and why a text is not valid JSON.
#pragma once

#include <string>
#include <string_view>

namespace loadline {

// Describes the fault in a text that a parser rejected: "line 3, column 5: unexpected '}'; expected string
// literal". If there is no syntax error, "no JSON: ..." names other possible reasons.
std::string json_fault(std::string_view text);

}  // namespace loadline
