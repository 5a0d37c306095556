// Makes and removes a folder with a name that is not taken.
#include "core/io/temporary_folder.h"

#include "core/base/error.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <stdlib.h>

namespace loadline {
namespace {

std::string system_folder() {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  return failed ? "/tmp" : folder.string();
}

}  // namespace

TemporaryFolder::TemporaryFolder() : TemporaryFolder(system_folder()) {}

TemporaryFolder::TemporaryFolder(const std::string& parent) {
  path_ = (std::filesystem::path(parent) / "loadline-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw system_error(path_, "create", errno);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a folder that cannot be removed stays in the temporary folder
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace loadline
