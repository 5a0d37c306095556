// Text, arithmetic, errors and options.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/progress.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>

#include <gtest/gtest.h>

namespace loadline::tests {

// --- Text, arithmetic and errors.

namespace {

TEST(Text, SizesTakeBothUnitSystems) {
  EXPECT_EQ(parse_size("4096", "x"), 4096u);
  EXPECT_EQ(parse_size("64MiB", "x"), 64u << 20);
  EXPECT_EQ(parse_size("64 mib", "x"), 64u << 20);
  EXPECT_EQ(parse_size("5GB", "x"), 5'000'000'000u);
  EXPECT_EQ(parse_size("1.5KiB", "x"), 1536u);
  EXPECT_EQ(parse_size("18446744073709551615", "x"), ~std::uint64_t{0});
}

TEST(Text, AmbiguousAndAbsurdSizesAreRefused) {
  for (const char* text : {"5G", "5k", "", "GiB", "-1", "1.2.3MiB", "5 apples", "1e3", "0x10", "20000000TiB",
                           "18446744073709551616", "99999999999GB", " 5"})
    EXPECT_THROW(parse_size(text, "--staging"), Error) << text;
  try {
    parse_size("5G", "--staging");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(error.what(),
                 "--staging: '5G' is ambiguous: write GiB (powers of 1024) or GB (powers of 1000)");
  }
}

TEST(Text, BytesReadWell) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes((1u << 20) - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(16'060'522'496), "14.96 GiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16.00 EiB");
  EXPECT_EQ(format_grouped(0), "0");
  EXPECT_EQ(format_grouped(999), "999");
  EXPECT_EQ(format_grouped(1000), "1,000");
  EXPECT_EQ(format_grouped(141'107'412'992), "141,107,412,992");
  EXPECT_EQ(format_count(8'030'261'248), "8.03 B");
  EXPECT_EQ(format_count(124'439'808), "124 M");
  EXPECT_EQ(format_count(999'600), "1.00 M");
  EXPECT_EQ(format_rate(4.62e9), "4.62 GB/s");
}

TEST(Text, NaturalOrderIsAStrictWeakOrder) {
  EXPECT_TRUE(natural_less("layer.2", "layer.10"));
  EXPECT_FALSE(natural_less("layer.10", "layer.2"));
  EXPECT_TRUE(natural_less("a", "a1"));
  EXPECT_FALSE(natural_less("a1", "a1"));
  const std::vector<std::string> words = {"",
                                          "0",
                                          "00",
                                          "01",
                                          "1",
                                          "1.",
                                          "10",
                                          "2",
                                          "a",
                                          "a0",
                                          "a00b",
                                          "a0b1",
                                          "a10",
                                          "a1b",
                                          "a2",
                                          "b",
                                          "a.1.2",
                                          "a.01.1",
                                          "99999999999999999999999",
                                          "100000000000000000000000"};
  for (const auto& a : words)
    for (const auto& b : words) {
      EXPECT_FALSE(natural_less(a, b) && natural_less(b, a)) << a << " " << b;
      if (a != b) EXPECT_TRUE(natural_less(a, b) || natural_less(b, a)) << a << " " << b;
      for (const std::string common : {"model.layers.", "model.layers.10.experts.007."})
        EXPECT_EQ(natural_less(common + a, common + b), natural_less(a, b))
            << common << ": " << a << " " << b;
      for (const auto& c : words)
        if (natural_less(a, b) && natural_less(b, c))
          EXPECT_TRUE(natural_less(a, c)) << a << " " << b << " " << c;
    }
}

TEST(Text, NamesCannotDriveATerminal) {
  EXPECT_EQ(safe_display("plain.name_0"), "plain.name_0");
  EXPECT_EQ(safe_display("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(safe_display("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(safe_display("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(safe_display("\xE2\x80\xAEtxt"), "\\u{202e}txt");  // right-to-left override
  EXPECT_EQ(safe_display("\xC2\x9Bx"), "\\u{9b}x");            // C1 control
  EXPECT_EQ(safe_display("\xFF\xC0\xAF"), "\\xff\\xc0\\xaf");
  EXPECT_EQ(safe_display("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(safe_display(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(safe_display("abcdefghij", 7), "ab...ij");
  EXPECT_EQ(safe_display("abcdefg", 7), "abcdefg");
}

// What is shown of a long text does not depend on that only its ends are looked at.
TEST(SafeDisplay, CutsLongTextsAsShortOnes) {
  constexpr std::string_view kParts[] = {"a",    "\xC3\xBC", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                                         "\xff", "\x80",     "\n",           "\xE2\x82"};
  std::mt19937 random(7);
  for (const std::size_t columns : {5u, 8u, 60u})
    for (int round = 0; round < 50; ++round) {
      std::string text;
      while (text.size() <= 16 * columns) text += kParts[random() % std::size(kParts)];
      const std::string whole = safe_display(text);
      std::vector<std::size_t> points;
      for (std::size_t at = 0; at < whole.size(); ++at)
        if ((static_cast<unsigned char>(whole[at]) & 0xC0u) != 0x80u) points.push_back(at);
      const std::size_t head = (columns - 3) / 2, tail = columns - 3 - head;
      EXPECT_EQ(safe_display(text, columns),
                whole.substr(0, points[head]) + "..." + whole.substr(points[points.size() - tail]));
    }
}

TEST(Text, WidthCountsColumns) {
  EXPECT_EQ(display_width("plain"), 5u);
  EXPECT_EQ(display_width("\xE5\xB1\xA4.weight"), 9u);  // a CJK character takes two
  EXPECT_EQ(display_width("e\xCC\x81"), 1u);            // e and a combining accent
  EXPECT_EQ(display_width("gr\xC3\xBC\xC3\x9F"), 4u);
}

TEST(Text, Utf8IsCheckedStrictly) {
  EXPECT_TRUE(is_valid_utf8("\xF0\x9F\x9A\xA2 ok"));
  for (const char* bad :
       {"\x80", "\xC1\x81", "\xE0\x80\x80", "\xED\xBF\xBF", "\xF4\x90\x80\x80", "\xF5", "\xC3"})
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
}

TEST(Checked, OverflowGivesNothing) {
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  EXPECT_EQ(checked_add(kMax, 0), kMax);
  EXPECT_FALSE(checked_add(kMax, 1));
  EXPECT_FALSE(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32));
  EXPECT_FALSE(checked_align_up(kMax, 32));
  EXPECT_EQ(checked_align_up(33, 32), 64u);
  EXPECT_TRUE(range_fits(5, 5, 10));
  EXPECT_TRUE(range_fits(10, 0, 10));
  EXPECT_FALSE(range_fits(kMax, 2, 10));
  EXPECT_FALSE(range_fits(11, 0, 10));
}

TEST(Errors, SayWhereAndHowMuch) {
  const Error error(ErrorCode::malformed, {.file = "model.safetensors", .byte = 16, .tensor = "wte\n"},
                    "needs 1024 bytes for [16,16] F32, offsets give 1000");
  EXPECT_STREQ(
      error.what(),
      "model.safetensors: byte 16: tensor 'wte\\x0a': needs 1024 bytes for [16,16] F32, offsets give 1000");
  EXPECT_EQ(error_code_name(error.code()), "malformed");
}

TEST(Progress, CancelsOnRequest) {
  std::stop_source source;
  Progress progress(source.get_token());
  progress.add_total(4);
  progress.add(1);
  EXPECT_DOUBLE_EQ(progress.fraction(), 0.25);
  EXPECT_NO_THROW(progress.check_canceled());
  source.request_stop();
  EXPECT_THROW(progress.check_canceled(), Error);
}

// No library's text reaches a person.
TEST(CurrentError, IsOursWhateverIsThrown) {
  const auto said = [](const auto& exception) {
    try {
      throw exception;
    } catch (...) {
      const Error error = current_error();
      return std::string(error_code_name(error.code())) + ": " + error.what();
    }
  };
  const std::string fault = "io: unexpected failure: a fault of this program";
  EXPECT_EQ(said(Error(ErrorCode::canceled, {.file = "m"}, "stopped").with({"force", "on"})),
            "cancelled: m: stopped");
  EXPECT_EQ(said(std::bad_alloc()), "limit: out of memory");
  EXPECT_EQ(
      said(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "library")),
      "limit: the system refuses: Resource temporarily unavailable");
  EXPECT_EQ(said(std::filesystem::filesystem_error(
                "library", "/gone", std::make_error_code(std::errc::no_such_file_or_directory))),
            "io: /gone: cannot use: No such file or directory");
  EXPECT_EQ(said(std::runtime_error("basic_string::at")), fault);
  EXPECT_EQ(said(42), fault);
}

// A table of texts from a file is one that no file can be written for.
TEST(TextHash, IsSeededAndTheSameForAllKindsOfText) {
  static_assert(std::is_same_v<graph::TextMap<int>::hasher, graph::TextHash>);
  static_assert(std::is_same_v<graph::TextViewSet::hasher, graph::TextHash>);
  const std::string text = "model.layers.0.mlp.down_proj.weight";
  EXPECT_NE(graph::TextHash()(text), std::hash<std::string>()(text));
  graph::TextMap<int> map;
  map.emplace(text, 7);
  const auto found = map.find(std::string_view(text));
  ASSERT_NE(found, map.end());
  EXPECT_EQ(map.hash_function()(text), graph::text_hash(text));
  EXPECT_EQ(map.find("model"), map.end());
  EXPECT_EQ(graph::text_hash(""), 0u);
}

}  // namespace

// --- Words to values and back, limits, and what somebody may have meant.

namespace {

std::string fault(OptionKind kind, std::string_view text) {
  return testing::facts_of([&] { (void)parse_option(kind, text); });
}

TEST(Options, WordsAndValuesAreTheSame) {
  for (const char* text : {"0", "1", "1023", "64KiB", "64MiB", "3TiB", "40000000000"})
    EXPECT_EQ(print_option(OptionKind::bytes, parse_option(OptionKind::bytes, text)), text);
  EXPECT_EQ(parse_option(OptionKind::bytes, "5GB"), OptionValue(std::uint64_t{5'000'000'000}));
  EXPECT_EQ(parse_option(OptionKind::flag, "on"), OptionValue(true));
  EXPECT_EQ(print_option(OptionKind::flag, false), "off");
  EXPECT_EQ(parse_option(OptionKind::names, "a, b,,c"), OptionValue(std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(parse_option(OptionKind::names, "a,b=host; c", ';'),
            OptionValue(std::vector<std::string>{"a,b=host", "c"}));
  EXPECT_EQ(print_option(OptionKind::names, std::vector<std::string>{"a", "b"}), "a,b");
  EXPECT_EQ(print_option(OptionKind::text, {}), "none");
}

TEST(Options, SayWhatIsWrongWithAWord) {
  EXPECT_EQ(fault(OptionKind::count, "x"), "usage 'x' 2^64");
  EXPECT_EQ(fault(OptionKind::count, "-1"), "usage '-1' 2^64");
  EXPECT_EQ(fault(OptionKind::count, "99999999999999999999"), "usage '99999999999999999999' 2^64");
  EXPECT_EQ(fault(OptionKind::flag, "yes"), "usage 'yes'");
  EXPECT_EQ(fault(OptionKind::names, " , "), "usage");
  EXPECT_EQ(fault(OptionKind::text, ""), "usage");
  EXPECT_EQ(fault(OptionKind::bytes, "64M"), "usage '64M' 1024 1000");
}

TEST(Options, FindWhatWasMeant) {
  const std::vector<std::string_view> known = {"sequential", "state_dict", "staged_ring", "direct"};
  EXPECT_EQ(nearest_word("sequental", known), "sequential");
  EXPECT_EQ(nearest_word("staged_rign", known), "staged_ring");
  EXPECT_EQ(nearest_word("dirct", known), "direct");
  EXPECT_EQ(nearest_word("zzz", known), "");
  EXPECT_EQ(nearest_word(std::string(100'000, 'a'), known), "");
}

}  // namespace

// --- What runs once.

TEST(Once, RunsAgainAfterAnErrorAndNeverAfterwards) {
  Once once;
  int runs = 0;
  EXPECT_THROW(once.run([&] {
    ++runs;
    throw Error(ErrorCode::limit, "no memory");
  }),
               Error);
  once.run([&] { ++runs; });
  once.run([&] { ++runs; });
  EXPECT_EQ(runs, 2);

  Once shared;
  std::atomic<int> shared_runs = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { shared.run([&] { ++shared_runs; }); });
  }
  EXPECT_EQ(shared_runs, 1);
}

}  // namespace loadline::tests
