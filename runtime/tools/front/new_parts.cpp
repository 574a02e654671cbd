// What `stepop new` calls and the front program has in another form: the components and their
// schema were made with the program, and translations of configs are the whole program's.
#include <set>
#include <sstream>
#include <string>

#include "runtime/tools/components/config_schema.h"
#include "runtime/tools/front/made_texts.h"
#include "runtime/tools/front/needs_libtorch.h"
#include "runtime/tools/migrate/from_dlas.h"
#include "runtime/tools/migrate/from_edflow.h"

namespace stepop {

std::set<std::string> registered_components() {
  std::istringstream lines(kMadeComponents);
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) names.insert(line);
  return names;
}

std::string config_schema(bool /*is_strict*/, const std::set<std::string>& /*built_in*/) {
  return kMadeSchema;
}

TranslatedConfig translate_edflow(const Value& /*edflow*/, const std::string& /*class_name*/) {
  throw NeedsLibTorch();
}

TranslatedConfig translate_dlas(const Value& /*dlas*/) { throw NeedsLibTorch(); }

}  // namespace stepop
