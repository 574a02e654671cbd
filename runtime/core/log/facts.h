// What a start makes, for the program that started it with --json.
#pragma once

#include <string_view>

namespace stepop {

/// From now on the standard output gets facts alone. What is printed there otherwise, also by
/// other processes that start later, goes to the standard error.
void begin_facts();

/// Writes the line `{"<name>": "<text>"}`; nothing without `begin_facts`. A reader that is gone is
/// no error.
void say_fact(std::string_view name, std::string_view text);

}  // namespace stepop
