// A number that a person wrote.
#pragma once

#include <optional>
#include <string>

namespace polyphony {

// The text whole, as a finite number; nothing: it is none.
std::optional<double> number_of(const std::string& text);

}  // namespace polyphony
