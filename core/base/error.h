// The one exception class: a code for programs, a place in the input, a sentence for people, and the option
// that would help.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace loadline {

// --- The option that would resolve an error, as data: front ends show it as a flag or a button.

// An option of one of the tables (opening, loading, converting) and the value to set; a flag's value is "on".
struct Remedy {
  std::string option = {};
  std::string value = {};
  bool operator==(const Remedy&) const = default;
};

// --- The one exception class: a code for programs, a place in the input, and a sentence for people.

enum class ErrorCode { io, malformed, unsupported, limit, gpu, canceled, usage, no_fit };

// The name scripts see in `--json` ("malformed", ...).
std::string_view error_code_name(ErrorCode code);

// Where in the input the fault lies. Every part may be absent.
struct ErrorPlace {
  std::string file = {};                   // as shown to the user, not escaped
  std::optional<std::uint64_t> byte = {};  // absolute offset in `file`
  std::optional<std::string> tensor = {};  // name as stored, not escaped
};

// Caught in three places only: CLI main, Job, fuzz target. what() is
// `FILE: byte N: tensor 'NAME': DETAIL`, with names escaped for a terminal.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string_view detail) : Error(code, ErrorPlace{}, detail) {}
  Error(ErrorCode code, ErrorPlace place, std::string_view detail);
  // With the detail as a format and its values.
  template <typename... Values>
  Error(ErrorCode code, ErrorPlace place, fmt::format_string<Values...> detail, const Values&... values)
      : Error(code, std::move(place),
              std::string_view(fmt::vformat(detail, fmt::make_format_args(values...)))) {}
  template <typename... Values>
  Error(ErrorCode code, fmt::format_string<Values...> detail, const Values&... values)
      : Error(code, ErrorPlace{}, detail, values...) {}

  // A copy of this error that also carries `remedy`.
  Error with(Remedy remedy) const;

  ErrorCode code() const { return code_; }
  const ErrorPlace& place() const { return place_; }
  const std::optional<Remedy>& remedy() const { return remedy_; }

 private:
  ErrorCode code_;
  ErrorPlace place_;
  std::optional<Remedy> remedy_ = {};
};

// An io Error for a failed system call: `FILE: cannot VERB: strerror(number)`.
Error system_error(std::string_view file, std::string_view verb, int number);

}  // namespace loadline
