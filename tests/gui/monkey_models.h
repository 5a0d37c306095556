// Models for random input: files of every format, valid and damaged, and graphs without files.
#pragma once

#include "app/gui/state/workspace.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace loadline::gui {

class MonkeyModels {
 public:
  MonkeyModels();

  // Holds the files, and everything that is written meanwhile.
  const std::filesystem::path& folder() const { return folder_.path(); }
  // A file or a model folder; one of them does not exist.
  const std::string& path(std::mt19937_64& random) const;
  // Shows a graph that lies in no file.
  void show(Workspace& workspace, std::mt19937_64& random) const;

 private:
  void add_damaged(std::mt19937_64& random, const std::string& name, const std::string& bytes);

  const loadline::testing::TemporaryFolder folder_;
  std::vector<std::string> paths_;
};

}  // namespace loadline::gui
