// The layout of --help: examples first, then options by group, one line each.
#pragma once

#include <memory>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace loadline::cli {

std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace loadline::cli
