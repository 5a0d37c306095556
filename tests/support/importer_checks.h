// What the tests of every importer ask: goldens, messages, hostile tables.
#pragma once

#include "core/base/error.h"
#include "tests/support/builders.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::testing {

// The text of the Error that `act` throws, or "" if it throws none. Any other exception fails the test.
template <typename Act>
std::string error_text(Act act) {
  try {
    act();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Compares with tests/golden/NAME; LOADLINE_UPDATE_GOLDEN=1 rewrites it.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(LOADLINE_GOLDEN) + "/" + name;
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr) write_file(path, text);
  EXPECT_EQ(text, read_file(path)) << "LOADLINE_UPDATE_GOLDEN=1 rewrites it";
}

struct Hostile {
  const char* name;
  std::string bytes;
  const char* expected;  // part of the message
};

// Every row gives an Error that holds its text. `read` takes the bytes.
template <typename Read>
void expect_errors(const std::vector<Hostile>& table, Read read) {
  for (const Hostile& row : table) {
    const std::string error = error_text([&] { read(row.bytes); });
    EXPECT_NE(error.find(row.expected), std::string::npos) << row.name << ": '" << error << "'";
    EXPECT_NE(error, "") << row.name;
  }
}

inline std::string repeat(std::string_view text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace loadline::testing
