// What tests say about the findings of the checker.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/schedule/check.hpp"

namespace tritax {

inline std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.where + ": " + finding.message + "\n";
  }
  return text;
}

// Of all causes.
inline std::size_t places_of(const std::vector<Finding>& findings) {
  std::size_t places = 0;
  for (const Finding& finding : findings) places += finding.count;
  return places;
}

inline void expect_sound(const Schedule& schedule) { EXPECT_EQ(text_of(check_schedule(schedule)), ""); }

// The first finding is of this kind, at this place, and says this.
inline void expect_finding(const Schedule& schedule, Finding::Kind kind, const std::string& where,
                           const std::string& message) {
  const auto findings = check_schedule(schedule);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, kind) << text_of(findings);
  EXPECT_EQ(findings[0].where, where);
  EXPECT_NE(findings[0].message.find(message), std::string::npos) << findings[0].message;
}

}  // namespace tritax
