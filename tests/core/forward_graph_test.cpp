// Size polynomials and the laws of forward graphs.
#include "core/graph/forward_graph.h"

#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <random>

#include <gtest/gtest.h>

namespace loadline {
namespace {

const std::vector<std::string> kSymbols = {"B", "S", "P"};

SizePoly sum(const SizePoly& a, const SizePoly& b) { return SizePoly::sum(a, b).value(); }
SizePoly product(const SizePoly& a, const SizePoly& b) { return SizePoly::product(a, b).value(); }

TEST(SizePoly, WritesWhatItIs) {
  const SizePoly b = SizePoly::symbol(kBatch), s = SizePoly::symbol(kSequence);
  EXPECT_EQ(SizePoly().text(kSymbols), "0");
  EXPECT_EQ(sum(product(SizePoly(2), product(s, b)), SizePoly(64)).text(kSymbols), "2*B*S + 64");
  EXPECT_EQ(sum(s, SizePoly(-1)).text(kSymbols), "S - 1");
  EXPECT_EQ(product(SizePoly(-3), s).text(kSymbols), "-3*S");
  EXPECT_EQ(SizePoly::symbol(SymbolId{9}).text(kSymbols), "?");
}

TEST(SizePoly, EqualSizesAreEqual) {
  const SizePoly s = SizePoly::symbol(kSequence), p = SizePoly::symbol(kPast);
  EXPECT_EQ(product(sum(s, p), sum(s, p)),
            sum(sum(product(s, s), product(p, p)), product(SizePoly(2), product(p, s))));
  EXPECT_EQ(sum(s, product(SizePoly(-1), s)), SizePoly());
}

TEST(SizePoly, AgreesWithArithmetic) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::uint64_t> at = {random() % 50, random() % 50, random() % 50};
    SizePoly poly(1);
    std::uint64_t expected = 1;
    for (int i = 0; i < 4; ++i) {
      const auto symbol = static_cast<std::uint16_t>(random() % 3);
      const auto constant = static_cast<std::int64_t>(random() % 100);
      if (random() % 2 == 0) {
        poly = product(poly, sum(SizePoly::symbol(SymbolId{symbol}), SizePoly(constant)));
        expected *= at[symbol] + static_cast<std::uint64_t>(constant);
      } else {
        poly = sum(poly, SizePoly(constant));
        expected += static_cast<std::uint64_t>(constant);
      }
    }
    EXPECT_EQ(poly.evaluate(at), expected) << poly.text(kSymbols);
  }
}

TEST(SizePoly, OverflowIsNothing) {
  const SizePoly big(INT64_MAX), s = SizePoly::symbol(kSequence);
  EXPECT_FALSE(SizePoly::sum(big, SizePoly(1)));
  EXPECT_FALSE(SizePoly::product(big, SizePoly(2)));
  EXPECT_FALSE(product(s, s).evaluate(std::vector<std::uint64_t>{0, std::uint64_t{1} << 32, 0}));
  EXPECT_FALSE(sum(s, SizePoly(-1)).evaluate(std::vector<std::uint64_t>{0, 0, 0}));
  EXPECT_FALSE(s.evaluate({}));
  std::optional<SizePoly> power = s;
  for (int i = 0; i < 20 && power; ++i) power = SizePoly::product(*power, s);
  EXPECT_FALSE(power);
}

TEST(ValueBytes, CountsElementsAndPacking) {
  const SizePoly s = SizePoly::symbol(kSequence);
  EXPECT_EQ(value_bytes({"v", DType::f16, std::vector{s, SizePoly(8)}})->text(kSymbols), "16*S");
  EXPECT_EQ(value_bytes({"v", DType::i4, std::vector{SizePoly(5)}})->constant(), 3);
  EXPECT_FALSE(value_bytes({"v", DType::i4, std::vector{s}}));
  EXPECT_FALSE(value_bytes({"v", std::nullopt, std::vector{s}}));
  EXPECT_FALSE(value_bytes({"v", DType::f32, std::nullopt}));
}

TEST(ForwardLaws, ValuesAreMadeOnceBeforeUse) {
  MetaGraph graph;
  graph.forward = ForwardGraph();
  graph.forward->values = {{"x", {}, {}}, {"y", {}, {}}};
  graph.forward->inputs = {ValueId{0}};
  graph.forward->outputs = {ValueId{1}};
  EXPECT_THROW(validate(graph), Error);  // y is never made
  graph.forward->ops = {{"Relu", "r", {ValueId{0}}, {}, {ValueId{1}}}};
  EXPECT_NO_THROW(validate(graph));
  graph.forward->ops.push_back(graph.forward->ops[0]);
  EXPECT_THROW(validate(graph), Error);  // y is made twice
  graph.forward->ops = {{"Relu", "r", {ValueId{1}}, {}, {ValueId{1}}}};
  EXPECT_THROW(validate(graph), Error);  // y is used before it is made
  graph.forward->ops = {{"Relu", "r", {ValueId{0}}, {TensorId{0}}, {ValueId{1}}}};
  EXPECT_THROW(validate(graph), Error);  // there is no tensor
}

TEST(ForwardLaws, WhatIsHeldIsThere) {
  MetaGraph graph;
  graph.forward = ForwardGraph();
  ForwardGraph& forward = *graph.forward;
  forward.values = {{"x", {}, {}}, {"y", {}, {}}, {"z", {}, {}}, {"t", {}, {}}};
  forward.inputs = {ValueId{0}};
  forward.ops = {{"Relu", "r", {ValueId{0}}, {}, {ValueId{1}}},
                 {"Relu", "s", {ValueId{1}}, {}, {ValueId{2}}}};
  forward.ops[0].temporaries = {ValueId{3}};
  forward.ops[1].held = {ValueId{3}, ValueId{2}};  // an earlier one's temporary, and what it makes itself
  EXPECT_NO_THROW(validate(graph));
  forward.ops[0].temporaries.clear();
  EXPECT_THROW(validate(graph), Error);
  forward.ops[1].held.clear();
  forward.ops[0].temporaries = {ValueId{9}};
  EXPECT_THROW(validate(graph), Error);
}

TEST(ForwardLaws, ABodyIsOneOperatorsAndNotTooDeep) {
  MetaGraph graph;
  graph.forward = ForwardGraph();
  ForwardGraph& forward = *graph.forward;
  forward.values = {{"x", {}, {}}, {"y", {}, {}}, {"i", {}, {}}, {"b", {}, {}}};
  forward.inputs = {ValueId{0}};
  forward.outputs = {ValueId{1}};
  forward.ops = {{"Loop", "l", {ValueId{0}}, {}, {ValueId{1}}}};
  forward.ops[0].bodies = {0};
  EXPECT_THROW(validate(graph), Error);  // there is none
  forward.bodies.push_back(
      {{{"Add", "a", {ValueId{0}, ValueId{2}}, {}, {ValueId{3}}}}, {ValueId{2}}, {ValueId{3}}});
  EXPECT_NO_THROW(validate(graph));
  forward.bodies[0].outputs = {ValueId{1}};
  EXPECT_THROW(validate(graph), Error);  // y is made later
  forward.bodies[0].outputs = {ValueId{3}};
  forward.bodies[0].ops[0].bodies = {0};
  EXPECT_THROW(validate(graph), Error);  // it is in itself
  forward.bodies[0].ops[0].bodies.clear();
  for (std::uint32_t i = 1; i <= kMostBodyDepth; ++i) {
    forward.bodies.push_back({{{"If", "i", {}, {}, {}}}, {}, {}});
    forward.bodies[i - 1].ops[0].bodies = {i};
    EXPECT_EQ(i < kMostBodyDepth, [&] {
      try {
        validate(graph);
        return true;
      } catch (const Error&) {
        return false;
      }
    }());
  }
}

TEST(SizePoly, TellsWhichSymbolsAreInIt) {
  const SizePoly batch = SizePoly::symbol(kBatch), both = *SizePoly::sum(batch, SizePoly::symbol(kPast));
  EXPECT_EQ(batch.as_symbol(), kBatch);
  EXPECT_FALSE(both.as_symbol());
  EXPECT_FALSE(SizePoly::product(batch, SizePoly(2))->as_symbol());
  EXPECT_FALSE(SizePoly(1).as_symbol());
  EXPECT_TRUE(both.mentions(kPast));
  EXPECT_FALSE(both.mentions(kSequence));
}

}  // namespace
}  // namespace loadline
