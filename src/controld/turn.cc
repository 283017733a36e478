#include "controld/turn.h"

#include "base/check.h"

namespace bmgpu::controld {

Turn::Turn(core::State& state, core::Stamp stamp, BootTime boot, bool writable, Observer observer)
    : state_(state),
      stamp_(stamp),
      boot_(boot),
      writable_(writable),
      observer_(std::move(observer)) {
  batch_.at = stamp.now;
}

core::Answer Turn::execute(const core::Command& command) {
  check(writable_, "turn: a command while the journal cannot be written");
  core::Decision decision = core::decide(state_, stamp_, command);
  for (core::Event& event : decision.events) {
    observer_(*this, event);
    core::apply(state_, event);
    batch_.events.push_back(std::move(event));
  }
  for (const core::Request& request : decision.requests) {
    sync(std::get<core::SyncNode>(request).node);
  }
  return std::move(decision.answer);
}

void Turn::put(store::Document document) {
  check(writable_, "turn: a document while the journal cannot be written");
  batch_.documents.push_back(std::move(document));
}

void Turn::remember(store::StoredAnswer answer) {
  check(writable_, "turn: an answer while the journal cannot be written");
  answers_[{answer.account, answer.key}] = batch_.answers.size();
  batch_.answers.push_back(std::move(answer));
}

const store::StoredAnswer* Turn::remembered(AccountId account, const std::string& key) const {
  const auto found = answers_.find({account, key});
  return found == answers_.end() ? nullptr : &batch_.answers[found->second];
}

}  // namespace bmgpu::controld
