// The built-in demo model: a small checkpoint in a temporary folder.
#pragma once

#include "core/base/progress.h"

#include <string>

namespace loadline::gui {

// A new folder in the system's temporary folder, or in `parent`. The destructor removes it with its content.
class DemoFolder {
 public:
  // Throws Error{io}.
  DemoFolder();
  explicit DemoFolder(const std::string& parent);
  DemoFolder(const DemoFolder&) = delete;
  DemoFolder& operator=(const DemoFolder&) = delete;
  ~DemoFolder();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Writes the demo preset with seeded random weights into `folder`, unless it is already there, and
// returns the path to open. The model appears whole or not at all, even if others write there at the same
// time.
std::string write_demo_model(const std::string& folder, Progress& progress);

}  // namespace loadline::gui
