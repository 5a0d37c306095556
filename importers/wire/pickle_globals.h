// Names in modules, as pickles mention them: in today's spelling, and whether they only serve to run code.
#pragma once

#include <string>

namespace loadline {

struct PickleGlobal {
  std::string module;
  std::string name;
};

// Protocol 2 writes the names of Python 2.
PickleGlobal modern_global(PickleGlobal global);

// Whether no honest checkpoint names it. Takes today's spelling.
bool runs_code(const PickleGlobal& global);

}  // namespace loadline
