// Checks that every importer's test makes.
#include "tests/support/hostile.h"

#include "core/base/error.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>

namespace loadline::testing {

MetaGraph import_bytes(std::string_view name, std::string_view bytes) {
  return import_source(memory_source(std::string(name), bytes));
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string import_error(std::string_view name, std::string_view bytes) {
  return error_of([&] { import_bytes(name, bytes); });
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(LOADLINE_GOLDEN) + "/" + name;
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr) write_file(path, text);
  EXPECT_EQ(text, read_file(path)) << "LOADLINE_UPDATE_GOLDEN=1 rewrites it";
}

void expect_errors(const std::vector<Hostile>& table, const std::function<void(std::string_view)>& read) {
  for (const Hostile& row : table) {
    const std::string error = error_of([&] { read(row.bytes); });
    EXPECT_NE(error, "") << row.name << ": opened";
    EXPECT_NE(error.find(row.expected), std::string::npos) << row.name << ": '" << error << "'";
  }
}

void expect_hostile(std::string_view file, const std::vector<Hostile>& table) {
  expect_errors(table, [&](std::string_view bytes) { import_bytes(file, bytes); });
}

void expect_prefixes_refused(std::string_view file, std::string_view sample) {
  for (std::size_t length = 0; length < sample.size(); ++length) {
    const std::string error = import_error(file, sample.substr(0, length));
    ASSERT_NE(error, "") << "length " << length;
    ASSERT_EQ(error.rfind(file, 0), 0u) << error;
  }
  EXPECT_EQ(import_error(file, sample), "");
}

void expect_flips_survived(std::string_view file, std::string_view sample, std::size_t end,
                           const std::function<void(std::string_view)>& read) {
  int refused = 0, opened = 0;
  for (std::size_t at = 0; at < end; ++at)
    for (const int flip : {0x01, 0x08, 0x10, 0x80, 0xFF}) {
      std::string bytes(sample);
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      const std::string error = error_of([&] { read(bytes); });
      ++(error.empty() ? opened : refused);
      ASSERT_TRUE(error.empty() || error.rfind(file, 0) == 0) << "byte " << at << ": " << error;
    }
  EXPECT_GT(refused, 0);
  EXPECT_GT(opened, 0);
}

void expect_flips_survived(std::string_view file, std::string_view sample, std::size_t end) {
  // import_source() ends with validate()
  expect_flips_survived(file, sample, end, [&](std::string_view bytes) { import_bytes(file, bytes); });
}

bool has_note(const MetaGraph& graph, Severity severity, std::string_view part) {
  return std::any_of(graph.notes.begin(), graph.notes.end(), [&](const Note& note) {
    return note.severity == severity && note.text.find(part) != std::string::npos;
  });
}

const Tensor& tensor_named(const MetaGraph& graph, std::string_view name) {
  for (const Tensor& tensor : graph.tensors)
    if (tensor.name == name) return tensor;
  throw std::out_of_range(std::string(name));
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace loadline::testing
