// Names, shapes and the index of names.
#include "core/graph/name.h"

#include "core/graph/dtype_and_shape.h"

#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

namespace loadline {
namespace {

TEST(Name, HoldsItsText) {
  const std::string long_text(100'000, 'x');
  Name name = long_text;
  const Name copy = name;
  EXPECT_EQ(copy, long_text);
  name = "short";
  EXPECT_EQ(copy.size(), long_text.size());
  EXPECT_EQ(name, "short");
  EXPECT_NE(name, copy);
  EXPECT_LT(name, copy);
  const Name moved = std::move(name);
  EXPECT_EQ(moved.str(), "short");
  EXPECT_TRUE(Name().empty());
  EXPECT_EQ(Name(""), Name());
  EXPECT_EQ(Name(std::string_view("a\0b", 3)).size(), 3u);
}

TEST(Name, ManyShareWithoutDependingOnEachOther) {
  std::vector<std::string> texts;
  for (int i = 0; i < 40'000; ++i)
    texts.push_back(i % 7 == 0 ? "" : std::string(static_cast<std::size_t>(i % 90), 'a') + std::to_string(i));
  std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<Name> names = Name::many(views);
  ASSERT_EQ(names.size(), texts.size());
  const std::vector<Name> kept = {names[1], names[39'999]};
  for (std::size_t i = 0; i < names.size(); ++i) {
    ASSERT_EQ(names[i], texts[i]);
    ASSERT_EQ(names[i].hash(), name_hash(texts[i]));
  }
  names.clear();
  EXPECT_EQ(kept[0], texts[1]);
  EXPECT_EQ(kept[1], texts[39'999]);
}

TEST(Dimensions, BehavesLikeAVector) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> expected;
    Shape shape;
    Strides strides;
    for (std::size_t n = random() % 6; n-- > 0;) {
      expected.push_back(random());
      shape.push_back(expected.back());
      strides.push_back(expected.back());
    }
    const Shape copy = shape;
    Shape moved = std::move(shape);
    shape = copy;
    Shape& itself = moved;
    moved = itself;
    EXPECT_EQ(copy.vector(), expected);
    EXPECT_EQ(moved, shape);
    EXPECT_EQ(strides.vector(), expected);
    EXPECT_EQ(std::vector<std::uint64_t>(copy.rbegin(), copy.rend()),
              std::vector<std::uint64_t>(expected.rbegin(), expected.rend()));
    if (!expected.empty()) {
      EXPECT_EQ(copy.front(), expected.front());
      EXPECT_EQ(copy.back(), expected.back());
      shape[0] += 1;
      EXPECT_NE(shape, copy);
      EXPECT_EQ(shape < copy, shape.vector() < copy.vector());
    }
  }
}

TEST(NameIndex, AgreesWithAMap) {
  std::mt19937 random(5);
  std::vector<std::string> texts;
  std::unordered_map<std::string, std::uint32_t> expected;
  NameIndex index(10);  // far too few: it grows
  const auto text_of = [&](std::uint32_t i) { return std::string_view(texts[i]); };
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    texts.push_back(std::to_string(random() % 15'000));
    // few hashes, so that names meet in the table
    const auto hash = static_cast<std::uint32_t>(std::stoul(texts.back()) % 512);
    const auto known = index.add(texts.back(), hash, i, text_of);
    const auto [at, fresh] = expected.try_emplace(texts.back(), i);
    ASSERT_EQ(known.has_value(), !fresh);
    if (known) {
      ASSERT_EQ(*known, at->second);
    }
    ASSERT_EQ(index.find(texts.back(), hash, text_of), at->second);
  }
  EXPECT_FALSE(index.find("none", 7, text_of));
}

}  // namespace
}  // namespace loadline
