// What frames learn of a keyboard and a mouse that are faster than they are.
#include "app/gui/window/input.h"

#include <string>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

using Kind = InputEvent::Kind;

// What one frame gets: "+a" pressed, "-a" released, "'a" typed; "down", "up" and "@x" for the mouse, which
// the frame before saw at `mouse`.
std::string frame(InputQueue& queue, float mouse = 0) {
  std::string seen;
  const auto place = queue.deliver({mouse, 0}, [&](const InputEvent& event) {
    if (event.of_button()) {
      seen += event.kind == Kind::button_press ? "down" : "up";
      return;
    }
    seen += event.kind == Kind::press ? '+' : event.kind == Kind::release ? '-' : '\'';
    seen += static_cast<char>(event.code);
  });
  if (place) seen += "@" + std::to_string(static_cast<int>(place->x));
  return seen;
}

void click(InputQueue& queue, float x) {
  for (const Kind kind : {Kind::button_press, Kind::button_release})
    queue.push({.kind = kind, .code = 0, .x = x});
}

void tap(InputQueue& queue, char key, bool shortcut = false) {
  queue.push({Kind::press, key, 0, 0, shortcut});
  if (!shortcut) queue.push({Kind::character, key, 0, 0, false});
  queue.push({Kind::release, key, 0, 0, false});
}

TEST(InputQueue, ATapShorterThanAFrameIsSeen) {
  InputQueue queue;
  tap(queue, 'a');
  EXPECT_EQ(frame(queue), "+a'a");
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(frame(queue), "-a");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(frame(queue), "");
}

TEST(InputQueue, EveryTapOfOneKeyIsSeen) {
  InputQueue queue;
  for (int i = 0; i < 3; ++i) tap(queue, 'j');
  std::string all;
  for (int i = 0; i < 6; ++i) all += frame(queue) + " ";
  EXPECT_EQ(all, "+j'j -j +j'j -j +j'j -j ");
}

TEST(InputQueue, DifferentKeysShareAFrame) {
  InputQueue queue;
  for (const char key : {'a', 'b'}) {
    queue.push({Kind::press, key, 0, 0, false});
    queue.push({Kind::character, key, 0, 0, false});
  }
  EXPECT_EQ(frame(queue), "+a'a+b'b");
}

TEST(InputQueue, WhatIsTypedAfterAShortcutWaitsForTheFocus) {
  InputQueue queue;
  tap(queue, 'F', true);
  tap(queue, 'x');
  EXPECT_EQ(frame(queue), "+F");
  EXPECT_EQ(frame(queue), "");  // the field takes the focus meanwhile
  EXPECT_EQ(frame(queue), "");
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(frame(queue), "-F+x'x");
  EXPECT_EQ(frame(queue), "-x");
  EXPECT_TRUE(queue.empty());
}

TEST(InputQueue, AClickIsWhereTheMouseWasAndAfterAFrameThatSawItThere) {
  InputQueue queue;
  click(queue, 7);
  EXPECT_EQ(frame(queue, 3), "@7");
  EXPECT_EQ(frame(queue, 7), "down@7");
  EXPECT_EQ(frame(queue, 7), "up@7");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(frame(queue, 7), "") << "the mouse is free again";
}

TEST(InputQueue, EveryClickOfTwoInOneFrameIsSeen) {
  InputQueue queue;
  click(queue, 7);
  click(queue, 7);
  std::string all;
  for (int i = 0; i < 4; ++i) all += frame(queue, 7) + " ";
  EXPECT_EQ(all, "down@7 up@7 down@7 up@7 ");
}

TEST(InputQueue, AButtonKeepsItsTurnAmongKeys) {
  InputQueue queue;
  queue.push({Kind::press, 'c', 0, 0, false});
  click(queue, 7);
  queue.push({Kind::release, 'c', 0, 0, false});
  EXPECT_EQ(frame(queue, 7), "+cdown@7");
  EXPECT_EQ(frame(queue, 7), "up@7");
  EXPECT_EQ(frame(queue, 7), "-c");
}

}  // namespace
}  // namespace loadline::gui
