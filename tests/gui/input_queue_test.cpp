// What frames learn of a keyboard that is faster than they are.
#include "app/gui/window/input_queue.h"

#include <string>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

using Kind = InputEvent::Kind;

// What one frame gets: "+a" pressed, "-a" released, "'a" typed.
std::string frame(InputQueue& queue) {
  std::string seen;
  queue.deliver([&](const InputEvent& event) {
    seen += event.kind == Kind::press ? '+' : event.kind == Kind::release ? '-' : '\'';
    seen += static_cast<char>(event.code);
  });
  return seen;
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

}  // namespace
}  // namespace loadline::gui
