// Any safetensors header, through simdjson.
#include "core/base/text.h"
#include "importers/huggingface/safetensors.h"

#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

namespace loadline {
namespace {

constexpr std::size_t kMostDepth = 64;

class Reader {
 public:
  Reader(std::string_view text, const std::string& path, SafetensorsFields& fields)
      : text_(text), path_(path), fields_(fields) {}

  void read(simdjson::dom::object root) {
    bool metadata = false;
    for (const auto& [key, value] : root) {
      if (key != "__metadata__") {
        read_entry(key, value);
      } else {
        if (std::exchange(metadata, true)) throw at_tensor(key, "the name occurs twice in the header");
        read_metadata(value);
      }
    }
  }

 private:
  template <typename... Values>
  Error at_tensor(std::string_view name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, safetensors_place(path_, text_, name), detail, values...);
  }

  void read_metadata(simdjson::dom::element value) {
    simdjson::dom::object object;
    if (value.get(object) != simdjson::SUCCESS) throw at_tensor("__metadata__", "is not an object");
    for (const auto& [key, text] : object) {
      std::string_view held;
      if (text.get(held) != simdjson::SUCCESS)
        throw at_tensor("__metadata__", "the value of '{}' is not a string", safe_display(key, 100));
      fields_.metadata.push_back({key, held});
    }
  }

  std::vector<std::uint64_t> read_integers(std::string_view name, std::string_view field,
                                           simdjson::dom::element value) const {
    simdjson::dom::array array;
    if (value.get(array) != simdjson::SUCCESS) throw at_tensor(name, "{} is not an array", field);
    std::vector<std::uint64_t> numbers;
    for (const simdjson::dom::element item : array) {
      std::uint64_t number = 0;
      if (item.type() == simdjson::dom::element_type::DOUBLE || item.get(number) != simdjson::SUCCESS)
        throw at_tensor(name, "{} holds something that is not a whole number from 0 to 2^64-1", field);
      numbers.push_back(number);
    }
    return numbers;
  }

  void read_entry(std::string_view name, simdjson::dom::element value) {
    simdjson::dom::object object;
    if (value.get(object) != simdjson::SUCCESS) throw at_tensor(name, "its entry is not an object");
    SafetensorsEntry entry;
    entry.name = name;
    bool has_dtype = false, has_shape = false, has_offsets = false;
    const auto once = [&](bool& seen, std::string_view field) {
      if (std::exchange(seen, true)) throw at_tensor(name, "{} occurs twice", field);
    };
    for (const auto& [key, field] : object) {
      if (key == "dtype") {
        once(has_dtype, key);
        if (field.get(entry.dtype) != simdjson::SUCCESS) throw at_tensor(name, "dtype is not a string");
      } else if (key == "shape") {
        once(has_shape, key);
        entry.shape = read_integers(name, key, field);
      } else if (key == "data_offsets") {
        once(has_offsets, key);
        const std::vector<std::uint64_t> offsets = read_integers(name, key, field);
        if (offsets.size() != 2)
          throw at_tensor(name, "data_offsets holds {} numbers, not 2", offsets.size());
        entry.begin = offsets[0];
        entry.end = offsets[1];
      } else {
        fields_.notes.push_back(make_note(Severity::warning, std::string(name),
                                          "unknown field '{}' in its header entry", safe_display(key, 100)));
      }
    }
    if (!has_dtype || !has_shape || !has_offsets)
      throw at_tensor(name, "{} is missing", !has_dtype ? "dtype" : !has_shape ? "shape" : "data_offsets");
    fields_.entries.push_back(std::move(entry));
  }

  std::string_view text_;
  const std::string& path_;
  SafetensorsFields& fields_;
};

}  // namespace

struct SafetensorsJson::Parser {
  simdjson::dom::parser parser;
};

SafetensorsJson::SafetensorsJson() : parser_(std::make_unique<Parser>()) {}
SafetensorsJson::~SafetensorsJson() = default;

void SafetensorsJson::parse(std::string_view text, const std::string& path, SafetensorsFields& fields) {
  static_assert(kPadding >= simdjson::SIMDJSON_PADDING);
  const ErrorPlace place{.file = path, .byte = 8};
  if (parser_->parser.allocate(text.size(), kMostDepth) != simdjson::SUCCESS)
    throw Error(ErrorCode::limit, {.file = path}, "no memory for a header of {} bytes", text.size());
  simdjson::dom::object root;
  constexpr bool kCopyIfNeeded = false;
  if (const auto error = parser_->parser.parse(text.data(), text.size(), kCopyIfNeeded).get(root);
      error != simdjson::SUCCESS) {
    if (error == simdjson::INCORRECT_TYPE)
      throw Error(ErrorCode::malformed, place, "the header is not a JSON object");
    throw Error(ErrorCode::malformed, place, "the header is not valid JSON: {}",
                simdjson::error_message(error));
  }
  Reader(text, path, fields).read(root);
}

ErrorPlace safetensors_place(const std::string& path, std::string_view header, std::string_view name) {
  const std::size_t found = header.rfind(fmt::format("\"{}\"", name));
  const std::uint64_t byte = 8 + (found == std::string_view::npos ? 0 : found);
  return {.file = path, .byte = byte, .tensor = std::string(name)};
}

}  // namespace loadline
