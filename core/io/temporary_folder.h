// A folder that is removed with its content.
#pragma once

#include <string>

namespace loadline {

// A new folder in the system's temporary folder, or in `parent`. The destructor removes it with its content.
class TemporaryFolder {
 public:
  // Throws Error{io}.
  TemporaryFolder();
  explicit TemporaryFolder(const std::string& parent);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace loadline
