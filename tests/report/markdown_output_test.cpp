// Markdown as HTML and as text for a terminal.
#include "app/report/markdown.h"

#include <gtest/gtest.h>

namespace loadline::report {
namespace {

constexpr std::string_view kPage =
    "# Title\n\nA **strong** word\nand `a < b`.\n\n- one\n- two\n\n```\nx & y\n```\n\n| a | b "
    "|\n|---|---|\n| 1 | 2 |\n";

TEST(MarkdownHtml, has_an_element_for_each_block) {
  EXPECT_EQ(markdown_html(kPage),
            "<h2>Title</h2>\n<p>A <strong>strong</strong> word and <code>a &lt; b</code>.</p>\n"
            "<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n<pre>x &amp; y\n</pre>\n"
            "<div class=\"scroll\"><table>\n<tr><th class=\"left\"><strong>a</strong></th><th "
            "class=\"left\"><strong>b</strong></th></tr>\n"
            "<tr><td class=\"left\">1</td><td class=\"left\">2</td></tr>\n</table></div>\n");
  EXPECT_EQ(rich_html("<script>"), "&lt;script&gt;");
  EXPECT_EQ(markdown_html(""), "");
}

TEST(MarkdownText, fills_lines) {
  EXPECT_EQ(markdown_text(kPage, 20),
            "Title\n\nA strong word and a\n< b.\n\n  - one\n  - two\n\n    x & y\n\na  b\n1  2\n\n");
  EXPECT_EQ(markdown_text("| a | b |\n|---|---|\n| 1 | one two three four five six |\n", 29),
            "a  b\n1  one two three four five\n   six\n\n");
  EXPECT_EQ(markdown_text("# T\n", 20, true), "\033[1mT\033[0m\n\n");
}

}  // namespace
}  // namespace loadline::report
