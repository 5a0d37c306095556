// Names in Python modules as pickles give them: their modern spelling, and whether they only serve to run
// code.
#pragma once

#include <string>

namespace loadline {

struct PickleGlobal {
  std::string module;
  std::string name;
};

// The Python 3 name of a global. Protocol 2 writes Python 2 names.
PickleGlobal modern_global(PickleGlobal global);

// Whether the global only serves to run code, so that no honest checkpoint names it. Takes the Python 3 name.
bool runs_code(const PickleGlobal& global);

}  // namespace loadline
