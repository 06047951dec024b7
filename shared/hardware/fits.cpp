#include "shared/hardware/fits.h"

#include "shared/hardware/fit_json.h"
#include "shared/hardware/shipped_files.h"

namespace polyphony {
namespace {

std::vector<Fit> read_fits() {
  std::vector<Fit> fits;
  for (const ShippedFile& file : fit_files()) {
    const JsonValue json = JsonValue::parse(file.text, file.path);
    json.check(object_form(fit_form()));
    const std::string path = file.path;
    const std::size_t stem = path.rfind('/') + 1;
    fits.push_back(read_fit(json, path.substr(stem, path.rfind('.') - stem)));
  }
  return fits;
}

}  // namespace

const std::vector<Fit>& shipped_fits() {
  static const std::vector<Fit> fits = read_fits();
  return fits;
}

const Fit* find_fit(const std::string& name) {
  for (const Fit& fit : shipped_fits())
    if (fit.name == name) return &fit;
  return nullptr;
}

std::vector<std::string> fit_names() {
  std::vector<std::string> names;
  for (const Fit& fit : shipped_fits()) names.push_back(fit.name);
  return names;
}

}  // namespace polyphony
