// A second, slower parser that remembers what it expected.
#include "core/forward/json_fault.h"

#include "core/base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline {
namespace {

using nlohmann::json;

// Keeps nothing but the message.
class Listener : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    message = error.what();
    return false;
  }

  std::string message;
};

}  // namespace

std::string json_fault(std::string_view text) {
  Listener listener;
  json::sax_parse(text, &listener);
  // "[json.exception.ID] parse error at line 1, column 2: syntax error while parsing value - unexpected X;
  // ..."
  std::string_view message = listener.message;
  if (message.empty()) return "no JSON: something stands behind the end, or a name occurs twice";
  const auto drop_to = [&](std::string_view mark) {
    const std::size_t at = message.find(mark);
    if (at != message.npos) message.remove_prefix(at + mark.size());
  };
  drop_to("] ");
  drop_to("parse error at ");
  const std::size_t colon = message.find(": ");
  const std::string_view place = message.starts_with("line ") ? message.substr(0, colon) : "";
  if (!place.empty()) drop_to(": ");
  if (message.starts_with("syntax error")) drop_to(" - ");
  constexpr std::size_t kShown = 160;
  return fmt::format("{}{}not valid JSON: {}", place, place.empty() ? "" : ": ",
                     safe_display(message, kShown));
}

}  // namespace loadline
