// What a test program that draws does before anything else.
#pragma once

namespace loadline::gui {

// Points the Vulkan loader at the software driver, so that every machine draws the same, and keeps
// driver and validation layer in memory to the end: once unloaded, what they still own looks like
// leaks without a name to the leak checker.
void prepare_drivers();

}  // namespace loadline::gui
