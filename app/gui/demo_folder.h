// The built-in demo model: a small checkpoint in a temporary folder.
#pragma once

#include "core/base/progress.h"

#include <string>

namespace loadline::gui {

// A fresh folder in the system's temporary one, or in `parent`; removed with all it holds on destruction.
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
// returns the path to open. It appears whole or not at all, whoever else writes there meanwhile.
std::string write_demo_model(const std::string& folder, Progress& progress);

}  // namespace loadline::gui
