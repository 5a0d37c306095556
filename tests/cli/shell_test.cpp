// Words of a command line that is printed.
#include "app/cli/base/terminal.h"

#include <gtest/gtest.h>

namespace loadline::cli {
namespace {

TEST(ShellWord, IsQuotedWhereItMustBe) {
  EXPECT_EQ(shell_word("--staging"), "--staging");
  EXPECT_EQ(shell_word("models/gpt2-xl_v1.safetensors"), "models/gpt2-xl_v1.safetensors");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("$(rm)"), "'$(rm)'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("name:*=host"), "'name:*=host'");
}

TEST(ShellWord, LetsNothingReachTheTerminal) {
  EXPECT_EQ(shell_word("a\nb"), "$'a\\012b'");
  EXPECT_EQ(shell_word("\x1b[2J"), "$'\\033\\1332J'");
  EXPECT_EQ(shell_word("it's\a"), "$'it\\047s\\007'");
}

}  // namespace
}  // namespace loadline::cli
