// Expressions of assets: values, and the place of what is wrong.
#include "core/assets/expression.h"

#include "core/base/error.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

Scope scope() {
  Scope scope;
  scope.name = [](std::string_view name) {
    if (name == "d") return Datum(std::int64_t{64});
    if (name == "H") return Datum(std::int64_t{4});
    if (name == "fraction") return Datum(0.25);
    if (name == "kind") return Datum(std::string("gemma2"));
    if (name == "rope.factor") return Datum(std::int64_t{8});
    if (name == "types") return Datum({Datum(std::string("full")), Datum(std::string("sliding"))});
    if (name == "labels") return Datum(Datum::Object{3});
    if (name == "B") return Datum(SizePoly::symbol(SymbolId{0}));
    if (name == "S") return Datum(SizePoly::symbol(SymbolId{1}));
    return Datum();
  };
  return scope;
}

AssetPlace here() { return {std::make_shared<const std::string>("asset.json"), 3, 10}; }

std::string value_of(std::string_view text) {
  const Datum value = Expression::parse(text, here()).evaluate(scope());
  const std::vector<std::string> symbols = {"B", "S"};
  return value.poly() != nullptr ? value.poly()->text(symbols) : value.shown();
}

std::string error_of(std::string_view text) {
  try {
    value_of(text);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Expression, Values) {
  const std::pair<const char*, const char*> rows[] = {
      {"7", "7"},
      {"d/H", "16"},
      {"d / H * 2 + 1", "33"},
      {"2 + 3 * 4", "14"},
      {"(2 + 3) * 4", "20"},
      {"10 - 3 - 2", "5"},
      {"-3 + 5", "2"},
      {"10 % 4", "2"},
      {"missing ?? d", "64"},
      {"d ?? missing", "64"},
      {"missing ?? also ?? 5", "5"},
      {"d == 64 and H < 5", "1"},
      {"d != 64 or not (H >= 4)", "0"},
      {"not missing", "1"},
      {"H > 4 ? 1 : 2", "2"},
      {"kind == 'gemma2' ? (H == 4 ? 'a' : 'b') : 'c'", "'a'"},
      {"kind in ['gemma', 'gemma2']", "1"},
      {"'x' in missing", "0"},
      {"types[1] == 'sliding'", "1"},
      {"len(types) + count(types, 'full')", "3"},
      {"len(labels)", "3"},
      {"cdiv(d, 60)", "2"},
      {"min(d, H) + max(d, H)", "68"},
      {"floor(d * fraction)", "16"},
      {"rope.factor", "8"},
      {"true and not false", "1"},
      {"missing == null", "1"},
      {"2*B*S + B*S", "3*B*S"},
      {"B*(S - 1)", "B*S - B"},
      {"B - B", "0"},
  };
  for (const auto& [text, value] : rows) EXPECT_EQ(value_of(text), value) << text;
}

TEST(Expression, ErrorsNameThePlace) {
  const std::pair<const char*, const char*> rows[] = {
      {"d / 7", "asset.json: line 3, column 12: 64 / 7 leaves a remainder"},
      {"missing + 1", "asset.json: line 3, column 18: 'missing' is missing"},
      {"1 + kind", "asset.json: line 3, column 12: 'gemma2' is no number"},
      {"types[2]", "asset.json: line 3, column 15: 'types' has 2 entries, position 2 (from 0) is asked for"},
      {"d[0]", "asset.json: line 3, column 11: 64[0]: a list and a whole number expected"},
      {"d / 0", "asset.json: line 3, column 12: 64 divided by 0"},
      {"9223372036854775807 + 1", "the result does not fit in 64 bits"},
      {"B / 2", "cannot be divided"},
      {"min(B, 2)", "is not possible"},
      {"len(d)", "len(64) is not possible"},
      {"no_such(1)", "there is no function 'no_such'"},
      {"1 +", "asset.json: line 3, column 13: an expression expected"},
      {"(1", "')' expected"},
      {"'open", "a text without its closing quote"},
      {"1 2", "asset.json: line 3, column 12: nothing more expected here"},
      {"d ? 1", "':' expected"},
      {"99999999999999999999", "a number of more than 63 bits"},
      {"", "an expression expected"},
  };
  for (const auto& [text, message] : rows)
    EXPECT_NE(error_of(text).find(message), std::string::npos) << text << ": " << error_of(text);
}

TEST(Expression, DepthAndLengthAreBounded) {
  EXPECT_NE(error_of(std::string(100, '(') + "1" + std::string(100, ')')).find("50 levels"),
            std::string::npos);
  std::string sum = "1";
  for (int i = 0; i < 5000; ++i) sum += "+1";
  EXPECT_NE(error_of(sum).find("1,000 parts"), std::string::npos);
}

}  // namespace
}  // namespace loadline
