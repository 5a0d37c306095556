// The pickle evaluator on its own: values, sharing, and what it refuses.
#include "importers/wire/pickle.h"

#include "core/base/error.h"
#include "core/io/system_memory.h"
#include "tests/support/builders.h"
#include "tests/support/hostile.h"
#include "tests/support/pickles.h"
#include "tests/support/sanitizers.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

using namespace testing::pickle;
using Kind = PickleValue::Kind;

Pickle evaluate(const std::string& bytes) {
  const SourceFile file = SourceFile::from_memory("p", testing::as_bytes(bytes));
  Cursor cursor(file);
  return Pickle(cursor);
}

TEST(PickleValues, Scalars) {
  const Pickle pickle =
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
    const Pickle pickle =
        evaluate(stream("\x8A" + std::string(1, static_cast<char>(digits.size())) + digits));
    return pickle.root().is(Kind::integer) ? std::to_string(pickle.integer(pickle.root())) : "too large";
  };
  EXPECT_EQ(kind(std::string(7, '\xFF') + "\x7F"), std::to_string(0x7FFFFFFFFFFFFFFF));
  EXPECT_EQ(kind(std::string(8, '\xFF')), "-1");
  EXPECT_EQ(kind(std::string(8, '\xFF') + std::string(1, '\0')), "too large");  // 2^64-1
  EXPECT_EQ(kind(std::string(16, '\xFF')), "-1");
  EXPECT_EQ(kind(std::string(7, '\0') + "\x80" + std::string(1, '\0')), "too large");  // 2^63
}

TEST(PickleValues, NamesOfPython2AreTodays) {
  const std::pair<std::string, std::string_view> names[] = {
      {global("__builtin__", "long"), "builtins.int"},
      {global("__builtin__", "xrange"), "builtins.range"},
      {global("copy_reg", "_reconstructor"), "copyreg._reconstructor"}};
  for (const auto& [opcode, name] : names) {
    const Pickle pickle = evaluate(stream(opcode));
    EXPECT_EQ(pickle.text(pickle.root()), name);
  }
}

TEST(PickleValues, ContainersAreShared) {
  // a list that holds itself, and twice a dict
  const Pickle pickle = evaluate(stream("]q" + std::string(1, '\0') + "(h" + std::string(1, '\0') +
                                        "}q\x01h\x01"
                                        "e"));
  const PickleValue root = pickle.root();
  const auto items = pickle.items(root);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].number(), root.number());
  EXPECT_EQ(items[1].number(), items[2].number());
}

TEST(PickleValues, DictsOfEveryMaking) {
  const std::string pairs = list({tuple({text("a"), number(1)}), list({text("b"), number(2)})});
  const Pickle pickle =
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
  const Pickle pickle = evaluate(
      stream(global("my.module", "Class") + tuple({number(1)}) + "\x81" + dict({{"x", number(2)}}) + "b"));
  const PickleObject* object = pickle.object(pickle.root());
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(pickle.text(object->callee), "my.module.Class");
  EXPECT_EQ(pickle.items(object->arguments).size(), 1u);
  EXPECT_TRUE(object->state.is(Kind::dict));
}

TEST(PickleValues, DictSubclassesKeepTheirItems) {
  const Pickle pickle = evaluate(stream(global("my", "Dict") + ")\x81(" + text("a") + number(1) + "u"));
  EXPECT_EQ(pickle.items(pickle.object(pickle.root())->state).size(), 2u);
}

TEST(PickleRefuses, WhatOnlyHarms) {
  const std::string tensor_call = tensor(storage("0", "FloatStorage", 1), 0, {1}, {1});
  const std::vector<testing::Hostile> table = {
      // code
      {"posix system", stream(call(global("posix", "system"), {text("id")})), "names 'posix.system'"},
      {"os system", stream(global("os", "system")), "names 'os.system'"},
      {"builtins exec", stream(call(global("builtins", "exec"), {text("x")})), "names 'builtins.exec'"},
      {"__builtin__ eval", stream(call(global("__builtin__", "eval"), {text("x")})), "names 'builtins.eval'"},
      {"getattr", stream(global("__builtin__", "getattr")), "names 'builtins.getattr'"},
      {"subprocess Popen", stream(global("subprocess", "Popen")), "runs code"},
      {"pip main", stream(global("pip", "main")), "runs code"},
      {"a submodule", stream(global("pip._internal", "main")), "runs code"},
      {"pkgutil resolve_name", stream(global("pkgutil", "resolve_name")), "runs code"},
      {"runpy", stream(global("runpy", "_run_code")), "runs code"},
      {"operator attrgetter", stream(global("operator", "attrgetter")), "runs code"},
      {"nested in a tensor's arguments",
       stream(
           call(global("torch._utils", "_rebuild_tensor_v2"), {call(global("os", "popen"), {text("id")})})),
       "names 'os.popen'"},
      {"after a valid prefix", stream(tuple({tensor_call, global("nt", "system")})), "names 'nt.system'"},
      // opcodes outside the subset
      {"STACK_GLOBAL", stream(text("posix") + text("system") + "\x93"), "opcode 0x93"},
      {"INST", stream("(iposix\nsystem\n"), "opcode 0x69"},
      {"OBJ", stream("(" + global("a", "b") + "o"), "opcode 0x6f"},
      {"EXT1", stream("\x82\x01"), "opcode 0x82"},
      {"POP hides a call", stream(global("a", "b") + ")R0N"), "opcode 0x30"},
      {"DUP", stream("N2"), "opcode 0x32"},
      {"FRAME", "\x80\x02\x95" + std::string(8, '\0') + "N.", "opcode 0x95"},
      {"protocol 4", "\x80\x04N.", "protocol 4"},
      {"text integer", stream("I1\n"), "opcode 0x49"},
      {"PERSID", stream("Pid\n"), "opcode 0x50"},
      // types
      {"SETITEM on a list", stream("]" + number(1) + number(2) + "s"), "SETITEM on what is no dict"},
      {"SETITEMS on a tensor", stream(tensor_call + "(" + number(1) + number(2) + "u"),
       "SETITEM on a torch._utils"},
      {"SETITEM on a tuple", stream(")" + number(1) + number(2) + "s"), "SETITEM on what is no dict"},
      {"APPEND to a dict", stream("}" + number(1) + "a"), "APPEND on what is no list"},
      {"APPENDS to a tensor", stream(tensor_call + "(" + number(1) + "e"), "APPEND on a torch._utils"},
      {"SETITEMS with an odd count", stream("}(" + number(1) + "u"), "a key that has no value"},
      {"BUILD on a tensor", stream(tensor_call + "}b"), "BUILD on torch._utils"},
      {"BUILD on a number", stream(number(1) + "}b"), "BUILD on what is no object"},
      {"REDUCE of a number", stream(number(1) + ")R"), "calls what is no global"},
      {"REDUCE of an object", stream(call(global("a", "b"), {}) + ")R"), "calls what is no global"},
      {"REDUCE with a list", stream(global("a", "b") + "]R"), "without a tuple of arguments"},
      {"NEWOBJ of a number", stream(number(1) + ")\x81"), "calls what is no global"},
      {"OrderedDict of a text", stream(call(global("collections", "OrderedDict"), {text("x")})),
       "than pairs"},
      {"OrderedDict of triples",
       stream(call(global("collections", "OrderedDict"), {list({tuple({"N", "N", "N"})})})), "than pairs"},
      {"persistent id that is a text", stream(text("x") + "Q"), "no tuple"},
      // stack and memo
      {"empty", "", "without its end"},
      {"no STOP", "\x80\x02N", "without its end"},
      {"STOP on nothing", "\x80\x02.", "STOP with 0 values"},
      {"STOP on two", "\x80\x02NN.", "STOP with 2 values"},
      {"STOP above a mark", "\x80\x02(N.", "STOP with 1 values"},
      {"TUPLE without a mark", stream("Nt"), "a mark that is not there"},
      {"TUPLE2 of one", stream("N\x86"), "from an empty stack"},
      {"TUPLE1 through a mark", stream("N(\x85"), "from an empty stack"},
      {"SETITEM of two", stream("}Ns"), "from an empty stack"},
      {"BINGET of nothing", stream("h\x05"), "memo slot 5, which was never set"},
      {"LONG_BINGET far away", stream("j\xFF\xFF\xFF\xFF"), "memo slot 4294967295"},
      {"LONG_BINPUT far away", stream("Nr\xFF\xFF\xFF\xFF"), "memo slot 4294967295 after 0"},
      {"BINGET in a gap", stream("Nq\x05h\x03"), "memo slot 3, which was never set"},
      // lengths
      {"text past the end",
       "\x80\x02X\xFF\xFF\xFF\x7F"
       "abc",
       "takes 2147483647 bytes"},
      {"text of 4 GiB",
       "\x80\x02X\xFF\xFF\xFF\xFF"
       "abc",
       "takes 4294967295 bytes"},
      {"number of 255 bytes", "\x80\x02\x8A\xFF" + std::string(255, '1') + ".",
       "more than 32 bytes in a number"},
      {"global without its end",
       "\x80\x02"
       "cabc",
       "a global's name"},
      {"global without a name",
       "\x80\x02"
       "c\n\n.",
       "without a name"},
      {"global of 2000 bytes",
       "\x80\x02"
       "c" +
           std::string(2000, 'a') + "\nb\n.",
       "more than 1000 bytes"},
      {"100,000 marks", "\x80\x02" + std::string(100'000, '('), "more than 10000 marks"},
      {"5,000,000 values on the stack", "\x80\x02" + std::string(5'000'000, 'N'),
       "more than 4000000 values on"},
      {"copies of a dict",
       stream("](}" + std::string("q\0(", 3) + std::string(20'000, 'N') + "u" +
              global("collections", "OrderedDict") + "q\1" +
              testing::repeat(std::string("h\1h\0\x85R", 6), 100) + "e"),
       "more than 24 bytes of memory for each of its own"},
      {"3,000,000 lists", "\x80\x02" + testing::repeat("]\x85", 3'000'000), "more than 8000000 values"},
      {"many lists", "\x80\x02](" + testing::repeat("](" + std::string(500, ']') + "e", 20'000),
       "more than 8000000 values"},
  };
  for (const testing::Hostile& row : table) {
    const std::string error = testing::error_of([&] { evaluate(row.bytes); });
    EXPECT_NE(error.find(row.expected), std::string::npos) << row.name << ": '" << error << "'";
  }
}

TEST(PickleValues, NumbersAndTextsOfEverySize) {
  const std::int64_t edges[] = {(1 << 26) - 1,  1 << 26,    -(1 << 26),
                                -(1 << 26) - 1, 0x7FFFFFFF, -0x7FFFFFFF - 1};
  for (const std::int64_t edge : edges) {
    const Pickle pickle = evaluate(stream(number(edge)));
    EXPECT_EQ(pickle.integer(pickle.root()), edge);
  }
  const std::size_t lengths[] = {0, 1, 999, 1000, 65'535, 65'536, 200'000};
  for (const std::size_t bytes : lengths) {
    const Pickle pickle = evaluate(stream(tuple({text(std::string(bytes, 'x')), text("after")})));
    EXPECT_EQ(pickle.text(pickle.items(pickle.root())[0]), std::string(bytes, 'x'));
    EXPECT_EQ(pickle.text(pickle.items(pickle.root())[1]), "after");
  }
  // more than a block holds, and long ones
  std::string texts;
  for (int i = 0; i < 20'000; ++i) texts += text("name " + std::to_string(i));
  const Pickle many = evaluate(stream("(" + texts + "t"));
  ASSERT_EQ(many.items(many.root()).size(), 20'000u);
  for (std::size_t i = 0; i < 20'000; ++i)
    ASSERT_EQ(many.text(many.items(many.root())[i]), "name " + std::to_string(i));
}

TEST(PickleValues, TuplesOfEverySize) {
  const std::size_t sizes[] = {0, 1, 8, 9, 999, 1000, 16'383, 50'000};
  for (const std::size_t size : sizes) {
    const Pickle pickle =
        evaluate(stream("(" + testing::repeat("(" + std::string(size, 'N') + "t", 40) + "t"));
    for (const PickleValue tuple : pickle.items(pickle.root())) ASSERT_EQ(pickle.items(tuple).size(), size);
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
    const std::uint64_t before = read_process_memory().rss_anon;
    const Pickle pickle = evaluate(bytes);
    EXPECT_LT(read_process_memory().rss_anon, before + (90 << 20)) << bytes.substr(0, 10);
    EXPECT_FALSE(pickle.items(pickle.root()).empty());
  }
}

TEST(PickleValues, EqualTuplesOfNumbersMayBeOne) {
  const Pickle pickle = evaluate(stream(tuple({tuple({number(1), number(2)}), tuple({number(1), number(2)}),
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
}  // namespace loadline
