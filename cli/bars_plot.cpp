#include "cli/bars_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "cli/report.hpp"
#include "cli/svg.hpp"
#include "model/core/error.hpp"
#include "sim/account_fields.hpp"

namespace tritax::cli {

namespace {

constexpr double kBarLabels = 250;   // width for names
constexpr double kBarsAcross = 520;  // width of the longest bar
constexpr double kBarsRight = 170;   // for times and marks
constexpr double kBarsHead = 76;
constexpr double kBarRow = 34;
constexpr double kBarThick = 22;
constexpr double kBarsFoot = 90;

// Cool colours for useful parts, warm colours for taxes; Okabe and Ito as in svg.hpp, with their yellow, and
// a grey.
constexpr std::array<std::string_view, 8> kPartColours{"#0072B2", "#56B4E9", "#009E73", "#E69F00",
                                                       "#D55E00", "#CC79A7", "#F0E442", "#999999"};

// 1, 2 or 5 times a power of ten, with four to ten steps in the range.
double tick_step(double highest) {
  const double power = std::pow(10.0, std::floor(std::log10(highest)));
  const double lead = highest / power;
  return power * (lead < 2 ? 0.2 : lead < 5 ? 0.5 : 1);
}

class BarsDrawing {
 public:
  explicit BarsDrawing(const BarsPlot& plot) : plot_(plot) {
    TRITAX_ASSERT(parts_.size() == kPartColours.size(), "every part of the account has a colour");
    for (const Bar& bar : plot.bars) {
      highest_us_ = std::max(highest_us_, us(bar.account.sum_ns()) * (1 + bar.band));
    }
    if (highest_us_ <= 0) highest_us_ = 1;
  }

  std::string draw() {
    const double height = kBarsHead + kBarRow * static_cast<double>(plot_.bars.size()) + kBarsFoot;
    put("{}", svg_head(kBarLabels + kBarsAcross + kBarsRight, height, 20, plot_.title, plot_.subtitle));
    axis();
    double y = kBarsHead;
    for (const Bar& bar : plot_.bars) {
      draw_bar(bar, y);
      y += kBarRow;
    }
    legend(y + 52);
    put("</svg>\n");
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  double x_of(double time_us) const { return kBarLabels + kBarsAcross * time_us / highest_us_; }

  void axis() {
    const double bottom = kBarsHead + kBarRow * static_cast<double>(plot_.bars.size());
    const double step = tick_step(highest_us_);
    for (double tick = 0; tick <= highest_us_; tick += step) {
      put("<line x1=\"{0:.1f}\" y1=\"{1:g}\" x2=\"{0:.1f}\" y2=\"{2:g}\" stroke=\"#e3e6ea\"/>\n", x_of(tick),
          kBarsHead - 6, bottom);
      put("<text x=\"{:.1f}\" y=\"{:g}\" text-anchor=\"middle\" fill=\"#555\">{}</text>\n", x_of(tick),
          bottom + 16, tick_label(tick));
    }
    put("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\" fill=\"#555\">time (us)</text>\n",
        kBarLabels + kBarsAcross, bottom + 34);
  }

  void draw_bar(const Bar& bar, double y) {
    put("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\">{}</text>\n", kBarLabels - 10, y + 16,
        escaped(bar.label));
    double time_us = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const double part_us = us(parts_[i].get(bar.account).number());
      if (part_us <= 0) continue;
      put("<rect x=\"{:.2f}\" y=\"{:g}\" width=\"{:.2f}\" height=\"{:g}\" fill=\"{}\"><title>{}: {:.1f} "
          "us</title></rect>\n",
          x_of(time_us), y, x_of(time_us + part_us) - x_of(time_us), kBarThick, kPartColours[i],
          parts_[i].label_text(), part_us);
      time_us += part_us;
    }
    if (bar.band > 0) {
      put("<path d=\"M{0:.1f} {2:g}v8M{0:.1f} {3:g}H{1:.1f}M{1:.1f} {2:g}v8\" stroke=\"#222\" "
          "fill=\"none\"/>\n",
          x_of(time_us / (1 + bar.band)), x_of(time_us * (1 + bar.band)), y + kBarThick / 2 - 4,
          y + kBarThick / 2);
    }
    put("<text x=\"{:.1f}\" y=\"{:g}\">{:.1f}{}{}</text>\n", x_of(time_us * (1 + bar.band)) + 8, y + 16,
        time_us, bar.mark.empty() ? "" : ", ", escaped(bar.mark));
  }

  void legend(double y) {
    double x = 20;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const bool shown = std::any_of(plot_.bars.begin(), plot_.bars.end(),
                                     [&](const Bar& bar) { return parts_[i].get(bar.account).number() > 0; });
      if (!shown) continue;
      const std::string name = parts_[i].label_text();
      put("<rect x=\"{:g}\" y=\"{:g}\" width=\"12\" height=\"12\" fill=\"{}\"/>", x, y, kPartColours[i]);
      put("<text x=\"{:g}\" y=\"{:g}\" fill=\"#222\">{}</text>\n", x + 17, y + 11, name);
      x += 36 + 7.2 * static_cast<double>(name.size());
    }
  }

  const BarsPlot& plot_;
  const Fields<TimeAccount>& parts_ = account_fields();
  double highest_us_ = 0;
  fmt::memory_buffer out_;
};

}  // namespace

std::string to_svg(const BarsPlot& plot) { return BarsDrawing(plot).draw(); }

}  // namespace tritax::cli
