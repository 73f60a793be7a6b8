#include "sim/alike_operands.hpp"

#include <algorithm>

#include "model/schedule/operations.hpp"

namespace tritax {

void AlikeOperands::begin(std::int32_t home) {
  home_ = &homes_[static_cast<std::size_t>(home)];
  next_ = 0;
  own_.assign(home_->places.size(), {});
  paired_.assign(home_->places.size(), 0);
  like_of_.clear();
}

// The number of the home's next operand.
std::uint32_t AlikeOperands::next_number(const Place& like) {
  if (next_ == home_->numbers.size()) {
    const auto number = static_cast<std::uint32_t>(home_->places.size());
    const auto [entry, added] = home_->number_of.emplace(like, number);
    if (added) {
      home_->places.push_back(like);
      own_.emplace_back();
      paired_.push_back(0);
    }
    home_->numbers.push_back(entry->second);
  }
  return home_->numbers[next_++];
}

bool AlikeOperands::pair(const Place& like, const Place& own) {
  const auto same = [](const Place& a, const Place& b) {  // compares a few bytes, faster than std::array
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4])) == 0;
  };
  const std::uint32_t number = next_number(like);
  if (paired_[number] != 0) return same(own_[number], own);
  paired_[number] = 1;
  own_[number] = own;
  return like_of_.emplace(own, number).second;
}

bool AlikeOperands::same(const Op& like, const Op& own) {
  const auto place = [](const Op& op, std::int32_t buffer, std::int32_t first, std::int32_t size) {
    return Place{buffer, first, size, op.k_begin, op.k_end};
  };
  return pair(place(like, like.src_buffer, like.rect.row, like.rect.rows),
              place(own, own.src_buffer, own.rect.row, own.rect.rows)) &&
         pair(place(like, like.b_buffer, like.rect.col, like.rect.cols),
              place(own, own.b_buffer, own.rect.col, own.rect.cols));
}

void AlikeOperands::add(SlabOverlaps& overlaps, const Place& place, std::size_t number) const {
  const auto& [buffer, first, size, k_begin, k_end] = place;
  overlaps.add(static_cast<std::uint32_t>(number), SlabOverlaps::band_of(buffer, first), size, k_begin, k_end,
               bytes_of(buffers_[static_cast<std::size_t>(buffer)], {0, 0, size, k_end - k_begin}));
}

SlabOverlaps AlikeOperands::overlaps_of(const std::vector<Place>& places) const {
  SlabOverlaps overlaps;
  for (std::size_t i = 0; i < places.size(); ++i) add(overlaps, places[i], i);
  overlaps.finish();
  return overlaps;
}

bool AlikeOperands::finish() {
  if (!home_->finished) {
    home_->overlaps = overlaps_of(home_->places);
    home_->finished = true;
    home_->number_of = {};
  }
  const SlabOverlaps own = overlaps_of(own_);
  overlap_ = overlap_ || !own.empty();
  all_.insert(all_.end(), own_.begin(), own_.end());
  return own.same_as(home_->overlaps);
}

bool AlikeOperands::same_bytes() const {
  if (!overlap_) return true;
  std::vector<Place> of_homes;
  for (const Home& home : homes_) of_homes.insert(of_homes.end(), home.places.begin(), home.places.end());
  std::vector<Place> of_all = all_;
  of_all.insert(of_all.end(), of_homes.begin(), of_homes.end());
  for (std::vector<Place>* places : {&of_homes, &of_all}) {
    std::sort(places->begin(), places->end());
    places->erase(std::unique(places->begin(), places->end()), places->end());
  }
  return overlaps_of(of_all).same_bytes_as(overlaps_of(of_homes));
}

}  // namespace tritax
