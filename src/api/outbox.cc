#include "api/outbox.h"

#include "base/check.h"

namespace bmgpu::api {

void Outbox::push(Delivery delivery) {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    return;
  }
  waiting_.push_back(std::move(delivery));
  if (!woken_) {
    woken_ = true;
    wake_();
  }
}

void Outbox::take(std::vector<Delivery>& into) {
  check(into.empty(), "outbox: the last deliveries were not consumed");
  const std::lock_guard lock(mutex_);
  into.swap(waiting_);
  woken_ = false;
}

void Outbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  waiting_.clear();
}

}  // namespace bmgpu::api
