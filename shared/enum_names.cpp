#include "shared/enum_names.h"

#include "shared/error.h"

namespace polyphony {

void no_enumerator(std::size_t value, std::size_t count) {
  POLYPHONY_CHECK(false, "value " << value << " of an enum with " << count << " enumerators");
}

}  // namespace polyphony
