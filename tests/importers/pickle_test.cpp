// Pickles.

#include "importers/wire/pickle.h"

#include "core/io/system_memory.h"
#include "tests/support/builders.h"
#include "tests/support/samples.h"
#include "tests/support/sanitizers.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

// --- The pickle evaluator on its own: values, sharing, and what it refuses.

namespace {

using namespace testing::pickle;

using Kind = importers::PickleValue::Kind;

importers::Pickle evaluate(const std::string& bytes) {
  const io::SourceFile file = io::SourceFile::from_memory("p", testing::as_bytes(bytes));
  io::Cursor cursor(file);
  return importers::Pickle(cursor);
}

TEST(PickleValues, Scalars) {
  const importers::Pickle pickle =
      evaluate(stream(tuple({"N", "\x88", "\x89", number(7), "M\xFF\xFF", "J\xFE\xFF\xFF\xFF", number(-5),
                             std::string("\x8A\x00", 2), real(0.25), text("x"), std::string("U\x02yz"),
                             global("__builtin__", "unicode")})));
  const auto items = pickle.items(pickle.root());
  ASSERT_EQ(items.size(), 12u);
  EXPECT_TRUE(items[0].is(Kind::none));
  EXPECT_EQ(items[1].number(), 1u);
  EXPECT_EQ(items[2].number(), 0u);
  EXPECT_EQ(pickle.integer(items[3]), 7);
  EXPECT_EQ(pickle.integer(items[4]), 65535);
  EXPECT_EQ(pickle.integer(items[5]), -2);
  EXPECT_EQ(pickle.integer(items[6]), -5);
  EXPECT_EQ(pickle.integer(items[7]), 0);
  EXPECT_EQ(pickle.real(items[8]), 0.25);
  EXPECT_EQ(pickle.text(items[9]), "x");
  EXPECT_EQ(pickle.text(items[10]), "yz");
  EXPECT_TRUE(pickle.is_global(items[11], "builtins.str"));
}

TEST(PickleValues, LongNumbersFitOrDoNot) {
  const auto kind = [](const std::string& digits) -> std::string {
    const importers::Pickle pickle =
        evaluate(stream("\x8A" + std::string(1, static_cast<char>(digits.size())) + digits));
    return pickle.root().is(Kind::integer) ? std::to_string(pickle.integer(pickle.root())) : "too large";
  };
  EXPECT_EQ(kind(std::string(7, '\xFF') + "\x7F"), std::to_string(0x7FFFFFFFFFFFFFFF));
  EXPECT_EQ(kind(std::string(8, '\xFF')), "-1");
  EXPECT_EQ(kind(std::string(8, '\xFF') + std::string(1, '\0')), "too large");  // 2^64-1
  EXPECT_EQ(kind(std::string(16, '\xFF')), "-1");
  EXPECT_EQ(kind(std::string(7, '\0') + "\x80" + std::string(1, '\0')), "too large");  // 2^63
}

TEST(PickleValues, NumbersAsTextOfProtocol1) {
  const importers::Pickle pickle =
      evaluate("(I00\nI01\nI1\nI-70000\nI001\nL5000000000L\nL-7L\nL9223372036854775808L\nL12\nt.");
  const auto items = pickle.items(pickle.root());
  ASSERT_EQ(items.size(), 9u);
  EXPECT_TRUE(items[0].is(Kind::boolean) && items[0].number() == 0);
  EXPECT_TRUE(items[1].is(Kind::boolean) && items[1].number() == 1);
  EXPECT_EQ(pickle.integer(items[2]), 1);
  EXPECT_EQ(pickle.integer(items[3]), -70000);
  EXPECT_EQ(pickle.integer(items[4]), 1);
  EXPECT_EQ(pickle.integer(items[5]), 5'000'000'000);
  EXPECT_EQ(pickle.integer(items[6]), -7);
  EXPECT_TRUE(items[7].is(Kind::big_integer));
  EXPECT_EQ(pickle.integer(items[8]), 12);
}

TEST(PickleValues, NamesOfPython2AreTodays) {
  const std::pair<std::string, std::string_view> names[] = {
      {global("__builtin__", "long"), "builtins.int"},
      {global("__builtin__", "xrange"), "builtins.range"},
      {global("copy_reg", "_reconstructor"), "copyreg._reconstructor"}};
  for (const auto& [opcode, name] : names) {
    const importers::Pickle pickle = evaluate(stream(opcode));
    EXPECT_EQ(pickle.text(pickle.root()), name);
  }
}

TEST(PickleValues, ContainersAreShared) {
  // a list that holds itself, and twice a dict
  const importers::Pickle pickle = evaluate(stream("]q" + std::string(1, '\0') + "(h" + std::string(1, '\0') +
                                                   "}q\x01h\x01"
                                                   "e"));
  const importers::PickleValue root = pickle.root();
  const auto items = pickle.items(root);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].number(), root.number());
  EXPECT_EQ(items[1].number(), items[2].number());
}

TEST(PickleValues, DictsOfEveryMaking) {
  const std::string pairs = list({tuple({text("a"), number(1)}), list({text("b"), number(2)})});
  const importers::Pickle pickle =
      evaluate(stream(tuple({dict({{"a", number(1)}}), call(global("collections", "OrderedDict"), {pairs}),
                             call(global("collections", "Counter"), {dict({{"a", number(1)}})}),
                             call(global("collections", "defaultdict"), {global("a", "b")})})));
  const auto items = pickle.items(pickle.root());
  const std::size_t sizes[] = {2, 4, 2, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(items[i].is(Kind::dict));
    EXPECT_EQ(pickle.items(items[i]).size(), sizes[i]);
  }
}

TEST(PickleValues, ObjectsAreNotMade) {
  const importers::Pickle pickle = evaluate(
      stream(global("my.module", "Class") + tuple({number(1)}) + "\x81" + dict({{"x", number(2)}}) + "b"));
  const importers::PickleObject* object = pickle.object(pickle.root());
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(pickle.text(object->callee), "my.module.Class");
  EXPECT_EQ(pickle.items(object->arguments).size(), 1u);
  EXPECT_TRUE(object->state.is(Kind::dict));
}

TEST(PickleValues, DictSubclassesKeepTheirItems) {
  const importers::Pickle pickle =
      evaluate(stream(global("my", "Dict") + ")\x81(" + text("a") + number(1) + "u"));
  EXPECT_EQ(pickle.items(pickle.object(pickle.root())->state).size(), 2u);
}

TEST(PickleRefuses, WhatOnlyHarms) {
  const std::string tensor_call = tensor(storage("0", "FloatStorage", 1), 0, {1}, {1});
  const std::vector<testing::Hostile> table = {
      // code
      {"posix system", stream(call(global("posix", "system"), {text("id")})),
       "unsupported p 2 'posix.system'"},
      {"os system", stream(global("os", "system")), "unsupported p 2 'os.system'"},
      {"builtins exec", stream(call(global("builtins", "exec"), {text("x")})),
       "unsupported p 2 'builtins.exec'"},
      {"__builtin__ eval", stream(call(global("__builtin__", "eval"), {text("x")})),
       "unsupported p 2 'builtins.eval'"},
      {"getattr", stream(global("__builtin__", "getattr")), "unsupported p 2 'builtins.getattr'"},
      {"subprocess Popen", stream(global("subprocess", "Popen")), "unsupported p 2 'subprocess.Popen'"},
      {"pip main", stream(global("pip", "main")), "unsupported p 2 'pip.main'"},
      {"a submodule", stream(global("pip._internal", "main")), "unsupported p 2 'pip._internal.main'"},
      {"pkgutil resolve_name", stream(global("pkgutil", "resolve_name")),
       "unsupported p 2 'pkgutil.resolve_name'"},
      {"runpy", stream(global("runpy", "_run_code")), "unsupported p 2 'runpy._run_code'"},
      {"operator attrgetter", stream(global("operator", "attrgetter")),
       "unsupported p 2 'operator.attrgetter'"},
      {"nested in a tensor's arguments",
       stream(
           call(global("torch._utils", "_rebuild_tensor_v2"), {call(global("os", "popen"), {text("id")})})),
       "unsupported p 36 'os.popen'"},
      {"after a valid prefix", stream(tuple({tensor_call, global("nt", "system")})),
       "unsupported p 128 'nt.system'"},
      // opcodes outside the subset
      {"STACK_GLOBAL", stream(text("posix") + text("system") + "\x93"),
       "unsupported p 23 0x93 4 torch.load weights_only 2"},
      {"INST", stream("(iposix\nsystem\n"), "unsupported p 3 0x69 0 torch.load weights_only 2"},
      {"OBJ", stream("(" + global("a", "b") + "o"), "unsupported p 8 0x6f 1 torch.load weights_only 2"},
      {"EXT1", stream("\x82\x01"), "unsupported p 2 0x82 2 torch.load weights_only 2"},
      {"POP hides a call", stream(global("a", "b") + ")R0N"),
       "unsupported p 9 0x30 0 torch.load weights_only 2"},
      {"DUP", stream("N2"), "unsupported p 3 0x32 0 torch.load weights_only 2"},
      {"FRAME", "\x80\x02\x95" + std::string(8, '\0') + "N.",
       "unsupported p 2 0x95 4 torch.load weights_only 2"},
      {"SHORT_BINBYTES",
       "\x80\x03"
       "C\x01x.",
       "unsupported p 2 0x43 3 torch.load weights_only 2"},
      {"no opcode", stream("\xff"), "unsupported p 2 0xff torch.save"},
      {"protocol 6", "\x80\x06N.", "unsupported p 0 6 5"},
      {"a text that is no number", stream("I1x\n"), "malformed p 2 '1x'"},
      {"no number", stream("I\n"), "malformed p 2 ''"},
      {"only a sign", stream("L-L\n"), "malformed p 2 '-L'"},
      {"a number without end", "I1", "malformed p 2 1 0"},
      {"a long text as a number", stream("I" + std::string(1001, '1') + "\n"), "limit p 2 1000"},
      {"PERSID", stream("Pid\n"), "unsupported p 2 0x50 0 torch.load weights_only 2"},
      // types
      {"SETITEM on a list", stream("]" + number(1) + number(2) + "s"), "malformed p 7"},
      {"SETITEMS on a tensor", stream(tensor_call + "(" + number(1) + number(2) + "u"),
       "malformed p 132 torch._utils._rebuild_tensor_v2"},
      {"SETITEM on a tuple", stream(")" + number(1) + number(2) + "s"), "malformed p 7"},
      {"APPEND to a dict", stream("}" + number(1) + "a"), "malformed p 5"},
      {"APPENDS to a tensor", stream(tensor_call + "(" + number(1) + "e"),
       "malformed p 130 torch._utils._rebuild_tensor_v2"},
      {"SETITEMS with an odd count", stream("}(" + number(1) + "u"), "malformed p 6"},
      {"BUILD on a tensor", stream(tensor_call + "}b"), "unsupported p 128 torch._utils._rebuild_tensor_v2"},
      {"BUILD on a number", stream(number(1) + "}b"), "malformed p 5"},
      {"REDUCE of a number", stream(number(1) + ")R"), "malformed p 5"},
      {"REDUCE of an object", stream(call(global("a", "b"), {}) + ")R"), "malformed p 11"},
      {"REDUCE with a list", stream(global("a", "b") + "]R"), "malformed p 8"},
      {"NEWOBJ of a number", stream(number(1) + ")\x81"), "malformed p 5"},
      {"OrderedDict of a text", stream(call(global("collections", "OrderedDict"), {text("x")})),
       "unsupported p 35 collections.OrderedDict"},
      {"OrderedDict of triples",
       stream(call(global("collections", "OrderedDict"), {list({tuple({"N", "N", "N"})})})),
       "malformed p 37 collections.OrderedDict"},
      {"persistent id that is a text", stream(text("x") + "Q"), "malformed p 8"},
      // stack and memo
      {"empty", "", "malformed p 0 1 0"},
      {"no STOP", "\x80\x02N", "malformed p 3 1 0"},
      {"STOP on nothing", "\x80\x02.", "malformed p 2 0 1"},
      {"STOP on two", "\x80\x02NN.", "malformed p 4 2 1"},
      {"STOP above a mark", "\x80\x02(N.", "malformed p 4 1 1"},
      {"TUPLE without a mark", stream("Nt"), "malformed p 3"},
      {"TUPLE2 of one", stream("N\x86"), "malformed p 3"},
      {"TUPLE1 through a mark", stream("N(\x85"), "malformed p 4"},
      {"SETITEM of two", stream("}Ns"), "malformed p 4"},
      {"BINGET of nothing", stream("h\x05"), "malformed p 2 5"},
      {"LONG_BINGET far away", stream("j\xFF\xFF\xFF\xFF"), "malformed p 2 4294967295"},
      {"LONG_BINPUT far away", stream("Nr\xFF\xFF\xFF\xFF"), "malformed p 3 4294967295 0"},
      {"BINGET in a gap", stream("Nq\x05h\x03"), "malformed p 5 3"},
      // lengths
      {"text past the end",
       "\x80\x02X\xFF\xFF\xFF\x7F"
       "abc",
       "malformed p 7 2147483647 3"},
      {"text of 4 GiB",
       "\x80\x02X\xFF\xFF\xFF\xFF"
       "abc",
       "malformed p 7 4294967295 3"},
      {"number of 255 bytes", "\x80\x02\x8A\xFF" + std::string(255, '1') + ".", "limit p 2 32"},
      {"global without its end",
       "\x80\x02"
       "cabc",
       "malformed p 6 1 0"},
      {"global without a name",
       "\x80\x02"
       "c\n\n.",
       "malformed p 2"},
      {"global of 2000 bytes",
       "\x80\x02"
       "c" +
           std::string(2000, 'a') + "\nb\n.",
       "limit p 2 1000"},
      {"100,000 marks", "\x80\x02" + std::string(100'000, '('), "limit p 10002 10000"},
      {"5,000,000 values on the stack", "\x80\x02" + std::string(5'000'000, 'N'), "limit p 4000002 4000000"},
      {"copies of a dict",
       stream("](}" + std::string("q\0(", 3) + std::string(20'000, 'N') + "u" +
              global("collections", "OrderedDict") + "q\1" +
              testing::repeat(std::string("h\1h\0\x85R", 6), 100) + "e"),
       "limit p 20137 24"},
      {"3,000,000 lists", "\x80\x02" + testing::repeat("]\x85", 3'000'000), "limit p 5333335 8000000"},
      {"many lists", "\x80\x02](" + testing::repeat("](" + std::string(500, ']') + "e", 20'000),
       "limit p 2679156 8000000"},
  };
  testing::expect_errors(table, [](std::string_view bytes) { evaluate(std::string(bytes)); });
}

TEST(PickleValues, NumbersAndTextsOfEverySize) {
  const std::int64_t edges[] = {(1 << 26) - 1,  1 << 26,    -(1 << 26),
                                -(1 << 26) - 1, 0x7FFFFFFF, -0x7FFFFFFF - 1};
  for (const std::int64_t edge : edges) {
    const importers::Pickle pickle = evaluate(stream(number(edge)));
    EXPECT_EQ(pickle.integer(pickle.root()), edge);
  }
  const std::size_t lengths[] = {0, 1, 999, 1000, 65'535, 65'536, 200'000};
  for (const std::size_t bytes : lengths) {
    const importers::Pickle pickle = evaluate(stream(tuple({text(std::string(bytes, 'x')), text("after")})));
    EXPECT_EQ(pickle.text(pickle.items(pickle.root())[0]), std::string(bytes, 'x'));
    EXPECT_EQ(pickle.text(pickle.items(pickle.root())[1]), "after");
  }
  // more than a block holds, and long ones
  std::string texts;
  for (int i = 0; i < 20'000; ++i) texts += text("name " + std::to_string(i));
  const importers::Pickle many = evaluate(stream("(" + texts + "t"));
  ASSERT_EQ(many.items(many.root()).size(), 20'000u);
  for (std::size_t i = 0; i < 20'000; ++i)
    ASSERT_EQ(many.text(many.items(many.root())[i]), "name " + std::to_string(i));
}

TEST(PickleValues, TuplesOfEverySize) {
  const std::size_t sizes[] = {0, 1, 8, 9, 999, 1000, 16'383, 50'000};
  for (const std::size_t size : sizes) {
    const importers::Pickle pickle =
        evaluate(stream("(" + testing::repeat("(" + std::string(size, 'N') + "t", 40) + "t"));
    for (const importers::PickleValue tuple : pickle.items(pickle.root()))
      ASSERT_EQ(pickle.items(tuple).size(), size);
  }
}

TEST(PickleValues, TakeASmallMultipleOfTheirStream) {
  if (testing::kThreadSanitizer)
    GTEST_SKIP() << "the thread sanitizer keeps a multiple of each byte beside it";
  constexpr std::size_t kBytes = 2'000'000;
  const auto filled = [](const std::string& unit) {
    return stream("](" + testing::repeat(unit, kBytes / unit.size()) + "e");
  };
  const std::string streams[] = {
      stream(std::string(kBytes / 2, ']') + std::string(kBytes / 2 - 1, 'a')),  // each in the one before
      filled("]"),
      filled("]Na"),
      filled("}NNs"),
      filled("N\x85"),
      filled("G12345678"),
      filled(text("")),
  };
  for (const std::string& bytes : streams) {
    const std::uint64_t before = io::read_process_memory().rss_anon;
    const importers::Pickle pickle = evaluate(bytes);
    EXPECT_LT(io::read_process_memory().rss_anon, before + (90 << 20)) << bytes.substr(0, 10);
    EXPECT_FALSE(pickle.items(pickle.root()).empty());
  }
}

TEST(PickleValues, EqualTuplesOfNumbersMayBeOne) {
  const importers::Pickle pickle =
      evaluate(stream(tuple({tuple({number(1), number(2)}), tuple({number(1), number(2)}),
                             tuple({number(2), number(1)}), tuple({number(1), "\x88"})})));
  const auto items = pickle.items(pickle.root());
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(pickle.integer(pickle.items(items[2])[0]), 2);
  EXPECT_TRUE(pickle.items(items[3])[1].is(Kind::boolean));
}

TEST(PickleRefuses, DeepNestingNeedsNoStack) {
  // 1,000,000 lists, each in the one before
  const std::string lists(1'000'000, ']');
  EXPECT_TRUE(evaluate("\x80\x02" + lists + std::string(999'999, 'a') + ".").root().is(Kind::list));
}

}  // namespace

}  // namespace loadline::tests
