// Tar archives made by hand.
#pragma once

#include <cstdio>
#include <string>

namespace polyphony::test {

// Returns a member with its header, "ustar". An archive is its members and 1,024 zeros.
inline std::string tar_member(const std::string& name, const std::string& content,
                              char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char text[32];
  std::snprintf(text, sizeof text, "%011zo", content.size());
  header.replace(124, 11, text, 11);
  header[156] = type;
  header.replace(257, 6, "ustar\0", 6);
  header.replace(148, 8, "        ");
  int sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(text, sizeof text, "%06o", static_cast<unsigned>(sum));
  header.replace(148, 7, text, 7);
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

}  // namespace polyphony::test
