// Pages of the manual as blocks.
#include "app/report/markdown.h"

#include "app/report/manual.h"

#include <gtest/gtest.h>

namespace loadline::report {
namespace {

// "plain *strong* `code`".
std::string marked(const RichText& text) {
  std::string all;
  for (const TextRun& run : text) {
    const std::string_view mark = run.emphasis == Emphasis::code     ? "`"
                                  : run.emphasis == Emphasis::strong ? "*"
                                                                     : "";
    all.append(mark).append(run.text).append(mark);
  }
  return all;
}

TEST(Markdown, has_runs_of_one_emphasis) {
  EXPECT_EQ(marked(rich_text("a **strong** word, *Options* and `--a *b*`.")),
            "a *strong* word, *Options* and `--a *b*`.");
  EXPECT_EQ(marked(rich_text("2 * x * y, [see `here`](there.md), [1, 2]")), "2 * x * y, see `here`, [1, 2]");
  EXPECT_EQ(marked(rich_text("one ` alone")), "one ` alone");
}

TEST(Markdown, has_blocks) {
  const auto blocks = markdown_blocks(
      "# Title\n\nOne\nparagraph.\n\n- first\n  goes on\n- second\n\n1. third\n\n```sh\n# code\n\n| "
      "code\n```\n"
      "![picture](a.png)\nBefore\n| a | b |\n|---|---|\n| `x\\|y` | z |\n\n| c |\n|---|\n");
  const std::vector<BlockKind> kinds = {BlockKind::heading,   BlockKind::paragraph, BlockKind::item,
                                        BlockKind::item,      BlockKind::item,      BlockKind::code,
                                        BlockKind::paragraph, BlockKind::table,     BlockKind::table};
  ASSERT_EQ(blocks.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(blocks[i].kind, kinds[i]) << i;
  EXPECT_EQ(marked(blocks[1].text), "One paragraph.");
  EXPECT_EQ(marked(blocks[2].text), "first goes on");
  EXPECT_EQ(blocks[4].mark, "1.");
  EXPECT_EQ(blocks[5].code, "# code\n\n| code\n");
  ASSERT_EQ(blocks[7].rows.size(), 2u);
  EXPECT_EQ(marked(blocks[7].rows[0].at(1)), "*b*") << "titles are strong";
  EXPECT_EQ(marked(blocks[7].rows[1].at(0)), "`x|y`");
  EXPECT_EQ(marked(blocks[7].rows[1].at(1)), "z");
}

TEST(Markdown, leaves_no_markup_in_the_manual) {
  for (const ManualPage& page : manual_pages())
    for (const Block& block : markdown_blocks(page.text)) {
      for (const auto& row : block.rows) EXPECT_EQ(row.size(), block.rows.front().size()) << page.id;
      for (const TextRun& run : block.text)
        if (run.emphasis != Emphasis::code) {
          EXPECT_EQ(run.text.find("**"), std::string::npos) << page.id << ": " << run.text;
          EXPECT_EQ(run.text.find('`'), std::string::npos) << page.id << ": " << run.text;
        }
    }
}

}  // namespace
}  // namespace loadline::report
